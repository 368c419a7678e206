import { controls } from "./controls.js";
import { HEIGHT, open, type SparksRoom, step, WIDTH } from "./game.js";
import { showError, showRoom } from "./page.js";
import { colour } from "./place.js";

const canvas = document.createElement("canvas");
[canvas.width, canvas.height] = [WIDTH * 2, HEIGHT * 2];
canvas.className = "field";
document.getElementById("field")!.replaceWith(canvas);
const pen = canvas.getContext("2d")!;
pen.scale(2, 2);

function disc(x: number, y: number, radius: number, fill: string, glow: number): void {
  pen.fillStyle = pen.shadowColor = fill;
  pen.shadowBlur = glow;
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
}

function draw(room: SparksRoom, timeMs: number): void {
  pen.clearRect(0, 0, WIDTH, HEIGHT);
  for (const [, { x, y }] of room.entries("spark/", { interpolated: true })) disc(x, y, 5 + Math.sin(timeMs / 200 + x), "#ffd166", 30);
  for (const [key, { x, y }] of room.entries("flyer/", { interpolated: true })) {
    const player = Number(key.slice("flyer/".length));
    disc(x, y, 13, colour(player), 24);
    disc(x, y, 6, colour(player, 88), 0);
    pen.fillStyle = "#e8e9f3";
    pen.font = "12px system-ui";
    pen.textAlign = "center";
    pen.fillText(room.players.get(player)?.name ?? "", x, y - 20);
  }
}

try {
  const room = await open();
  const { move } = controls(canvas);
  showRoom(room);
  room.run({
    tick() {
      room.sendInput(move(room.get(`flyer/${room.me}`)));
      if (room.isHost) step(room);
    },
    draw: ({ timeMs }) => draw(room, timeMs),
  });
} catch (error) {
  showError(error);
}
