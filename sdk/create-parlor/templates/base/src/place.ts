// Where the game plays, and who plays it.

/** The server: what `VITE_SERVER` says at the build, such as `play.example.com`; else one on this machine. */
export const server: string = import.meta.env["VITE_SERVER"] ?? "localhost:7700";

const NAMES = ["Badger", "Crane", "Fox", "Heron", "Lynx", "Marten", "Otter", "Raven", "Stoat", "Wren"];

/** A name for who has none yet. */
export const name = NAMES[Math.floor(Math.random() * NAMES.length)]!;

/** The colour of a player. */
export const colour = (player: number, light = 62): string => `hsl(${(player * 137 + 38) % 360} 82% ${light}%)`;
