// Sumo: two who never met, in an arena. The matchmaker finds them, one of them hosts the room, and the other joins it. A world
// of entities: each player's own wrestler is predicted, so it answers at once; the host decides who pushes whom.

import { component, defineGame, type Entity, type Infer, type, type Vec2, vec2 } from "parlor";
import { type Account, signIn } from "parlor/online";

/** The address of the server: examples/play.mjs fills it in. */
declare const SERVER: string;

const RING = 250;
const RADIUS = 40;
const WINS = 3;
const COLOURS = ["#e2533f", "#3f8fe2"];

const Wrestler = component("wrestler", { at: vec2(-512, 512, 1 / 32), speed: vec2(-32, 32, 1 / 256) });
const sumo = defineGame("sumo", {
  tickHz: 30,
  world: { components: [Wrestler] },
  predict: [Wrestler],
  state: { round: type<{ began: number; wins: number[]; over?: boolean }>() },
  input: type<{ dx: number; dy: number }>(),
});
type Pair<T> = [T, T];
type Room = Awaited<ReturnType<typeof sumo.host>>;
type Search = Awaited<ReturnType<typeof enter>>;

const enter = (me: Account) => me.call("matchmaking.enter", { queue: "sumo", players: { min: 2, max: 2 } });

/** Searches until a match is found. Opens its room if the matchmaker asks this player, else joins it. */
function findMatch(me: Account): Promise<Room> {
  return new Promise((resolve, reject) => {
    let isOpening = false;
    const follow = async ({ state, opens, found, ticket, why }: Search) => {
      if (state === "ended" && !isOpening) throw new Error(`the search is over: ${why}`);
      if (isOpening || (state !== "found" && !(state === "opening" && opens))) return;
      isOpening = true;
      if (state === "found") return resolve(await sumo.join(found!.room.code, { account: me }));
      const room = await sumo.host({ account: me, maxPlayers: 2, hostMigration: false });
      await me.call("matchmaking.opened", { ticket, code: room.code });
      resolve(room);
    };
    me.news(({ topic, ticket, search }) => {
      if (topic.startsWith("search/")) follow({ ...(search as object), ticket } as Search).catch(reject);
    });
    enter(me).then(follow).catch(reject);
  });
}

/** How large the ring is: it is gone after 20 s. */
const ringOf = (room: Room) => Math.max(0, RING * (1 - (room.tickNumber - (room.get("round")?.began ?? room.tickNumber)) / 600));
const clamp = (n: number) => Math.max(-1, Math.min(1, Number(n) || 0));

/** One step of the wrestlers that this page simulates: all at the host, and its own at the other player. */
function move(room: Room): void {
  if (room.get("round")?.over) return;
  for (const [entity, { at, speed }] of room.world.simulated(Wrestler)) {
    // A player may send anything, so what it wants is clamped.
    const { dx = 0, dy = 0 } = room.input(room.world.owner(entity)!) ?? {};
    const [x, y] = [speed.x * 0.94 + clamp(dx) * 0.5, speed.y * 0.94 + clamp(dy) * 0.5];
    room.world.set(entity, Wrestler, { at: { x: at.x + x, y: at.y + y }, speed: { x, y } });
  }
}

/** The host's rules: begins rounds, lets wrestlers bounce, and counts who stays on the ring. */
function judge(room: Room): void {
  const round = room.get("round");
  if (round?.over || room.players.size < 2) return;
  if (round === undefined) {
    for (const id of room.players.keys()) room.world.spawn(id);
    return begin(room, [0, 0]);
  }
  const [[a, left], [b, right]] = [...room.world.each(Wrestler)] as Pair<[Entity, Infer<typeof Wrestler>]>;
  const [dx, dy] = [right.at.x - left.at.x, right.at.y - left.at.y];
  const distance = Math.hypot(dx, dy) || 1;
  const push = ((left.speed.x - right.speed.x) * dx + (left.speed.y - right.speed.y) * dy) / distance;
  if (distance < 2 * RADIUS) {
    // They part, and the one gives its speed to the other, and some more.
    const [apart, given] = [RADIUS - distance / 2, 1.2 * Math.max(0, push)].map((by) => ({ x: (by * dx) / distance, y: (by * dy) / distance }));
    const from = ({ x, y }: Vec2, by: Vec2, side: number) => ({ x: x + side * by.x, y: y + side * by.y });
    room.world.set(a, Wrestler, { at: from(left.at, apart!, -1), speed: from(left.speed, given!, -1) });
    room.world.set(b, Wrestler, { at: from(right.at, apart!, 1), speed: from(right.speed, given!, 1) });
  }
  const fallen = [left, right].map(({ at }) => Math.hypot(at.x, at.y) > ringOf(room));
  if (fallen.includes(true)) begin(room, round.wins.map((wins, i) => wins + Number(fallen[1 - i] && !fallen[i])));
}

function begin(room: Room, wins: number[]): void {
  room.set("round", { began: room.tickNumber, wins, over: wins.includes(WINS) });
  room.world.entities.forEach((entity, i) => room.world.set(entity, Wrestler, { at: { x: 240 * i - 120, y: 0 }, speed: { x: 0, y: 0 } }));
}

const pen = document.querySelector("canvas")!.getContext("2d")!;
const again = document.querySelector("button")!;
const say = (text: string) => void (document.getElementById("status")!.textContent = text);
again.onclick = () => location.reload();

function disc(x: number, y: number, radius: number, fill: string): void {
  pen.fillStyle = fill;
  pen.beginPath();
  pen.arc(300 + x, 300 + y, radius, 0, 2 * Math.PI);
  pen.fill();
}

function draw(room: Room): void {
  const { wins = [0, 0], over } = room.get("round") ?? {};
  const own = room.isHost ? 0 : 1;
  pen.clearRect(0, 0, 600, 600);
  disc(0, 0, ringOf(room), "#d9b26f");
  let i = 0;
  for (const [, { at }] of room.world.each(Wrestler, { shown: true })) disc(at.x, at.y, RADIUS, COLOURS[i++]!);
  const score = `you ${wins[own]} : ${wins[1 - own]}`;
  say(over ? `${score} ${wins[own] === WINS ? "You win!" : "You lose."}` : `${score} You are ${["red", "blue"][own]}.`);
  again.hidden = !over;
}

// Each tab is a player of its own.
const store = {
  get: (key: string) => sessionStorage.getItem(key),
  set: (key: string, value: string) => sessionStorage.setItem(key, value),
  remove: (key: string) => sessionStorage.removeItem(key),
};
const down = new Set<string>();
addEventListener("keydown", ({ key }) => down.add(key));
addEventListener("keyup", ({ key }) => down.delete(key));
const axis = (less: string, more: string) => Number(down.has(more)) - Number(down.has(less));
try {
  const room = await findMatch(await signIn(SERVER, { app: "sumo", store }));
  const stop = room.run({
    tick() {
      room.sendInput({ dx: axis("ArrowLeft", "ArrowRight"), dy: axis("ArrowUp", "ArrowDown") });
      move(room);
      if (room.isHost) judge(room);
    },
    draw: () => draw(room),
  });
  room.on("playerLeft", () => room.stop());
  room.on("closed", () => (stop(), (again.hidden = false), say("The other player has left.")));
} catch (why) {
  say((why as Error).message);
}
