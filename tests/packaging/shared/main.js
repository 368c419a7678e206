import { play } from "./play.js";

/** Plays in this process: SERVER [CODE]. The host goes last, so that the guest has seen all. */
export async function main(parlor, options = {}) {
  const [server, invite] = process.argv.slice(2);
  const show = (name, text) => console.log(`${name === "link" ? "code" : name} ${text}`);
  const room = await play(parlor, { server, invite, show, options });
  if (invite === undefined) await room.next("playerLeft");
  await room.leave();
}
