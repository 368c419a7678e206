// A game of three for rollback, as pages and a process in Node play it. Both functions are sent as text to pages, so they use
// nothing from outside.

/** Begins the lane that the host announces, and plays it until its end. Gives `checks`: settled states by their step. */
export async function duel(room, { rollback, math }, ticks) {
  const pressed = () => ({ turn: Math.floor(Math.random() * 3) - 1, go: Math.random() < 0.8 });
  let input = pressed();
  let lane;
  const seen = { checks: {}, desyncs: 0, rollbacks: 0, state: undefined };
  const begin = (config) => {
    const began = rollback(room, config, {
      state: { cars: config.players.map((_, i) => ({ x: i, y: 0, heading: i, speed: 0 })) },
      step({ cars }, inputs) {
        [...inputs.values()].forEach(({ input = { turn: 0, go: false } }, i) => {
          const car = cars[i];
          car.heading += input.turn * 0.07;
          car.speed = math.hypot(car.speed * 0.9, input.go ? 0.3 : 0);
          car.x += math.cos(car.heading) * car.speed;
          car.y += math.sin(car.heading) * car.speed;
        });
      },
    });
    began.on("desync", () => (seen.desyncs += 1));
    return began;
  };
  await new Promise((resolve) => {
    const stop = room.run({
      tick() {
        const match = room.get("match");
        if (match === undefined) return;
        lane ??= begin(match);
        if (Math.random() < 0.1) input = pressed();
        lane.advance(input);
        const { tick, state } = lane.settled;
        seen.checks[tick] = JSON.stringify(state);
        if (tick < match.begin + ticks) return;
        Object.assign(seen, { rollbacks: lane.diagnostics.rollbacks, counted: lane.diagnostics.desyncs, state });
        // The host goes on settling for the others.
        if (room.isHost && [...room.players.values()].some((player) => !player.isHost && player.data("done") !== true)) return;
        if (!room.isHost) room.setData("done", true);
        stop();
        resolve();
      },
    });
  });
  return seen;
}
