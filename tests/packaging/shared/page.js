import { play } from "./play.js";

/** Plays in this page. What is to be seen stands in the body's attributes. */
export async function playHere(parlor) {
  const { dataset } = document.body;
  try {
    await play(parlor, {
      server: new URLSearchParams(location.search).get("server"),
      invite: parlor.inviteFrom(),
      link: (room) => room.inviteUrl(location.href),
      show: (name, text) => (dataset[name] = text),
    });
  } catch (error) {
    dataset.error = `${error}`;
  }
}
