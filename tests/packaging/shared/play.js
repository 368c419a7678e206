// The game that all apps play: the guest greets, the host keeps the greeting as state, and both list who is there.

const HOST = { name: "ada", maxPlayers: 2 };
const GUEST = { name: "ben" };

/** Hosts, or joins by an invite. What is to be seen goes to `show`. Resolves when all of it was shown. */
export async function play({ host, join }, { server, invite, show, options = {}, link = (room) => room.code }) {
  const shared = { server, ...options };
  const room = invite === undefined ? await host("packaging", { ...shared, ...HOST }) : await join("packaging", invite, { ...shared, ...GUEST });
  const players = () => [...room.players.values()].map(({ name }) => name).join(" ");
  if (invite === undefined) show("link", link(room));
  else room.send("host", "greeting", `hello from ${GUEST.name}`);
  const greeted = new Promise((resolve) => {
    room.on("message", ({ value }) => {
      room.set("greeted", value);
      resolve();
    });
    room.on("state", () => {
      if (room.get("greeted") === undefined) return;
      show("greeted", room.get("greeted"));
      resolve();
    });
  });
  await greeted;
  show("players", players());
  return room;
}
