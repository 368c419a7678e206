import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Emitter } from "../../src/room/emitter.js";
import { LoopRunner, type Steps } from "../../src/room/loop.js";

describe("listeners", () => {
  it("are called until they stop, by themselves, a signal, or after once", () => {
    const emitter = new Emitter();
    const heard: string[] = [];
    const end = new AbortController();
    const stop = emitter.on("x", (it) => void heard.push(`a${it}`));
    emitter.on("x", (it) => void heard.push(`b${it}`), { signal: end.signal });
    emitter.on("x", (it) => void heard.push(`c${it}`), { once: true });
    emitter.emit("x", 1);
    stop();
    end.abort();
    emitter.emit("x", 2);
    expect(heard).toEqual(["a1", "b1", "c1"]);
    emitter.on("x", () => void heard.push("late"), { signal: end.signal });
    emitter.emit("x", 3);
    expect(heard).toHaveLength(3);
  });

  it("that are the same function twice are two", () => {
    const emitter = new Emitter();
    const listener = vi.fn();
    emitter.on("x", listener);
    const stop = emitter.on("x", listener);
    stop();
    emitter.emit("x", 1);
    expect(listener).toHaveBeenCalledTimes(1);
  });

  it("may change the list while they are called", () => {
    const emitter = new Emitter();
    const heard: string[] = [];
    emitter.on("x", () => {
      heard.push("first");
      emitter.on("x", () => void heard.push("added"));
    }, { once: true });
    emitter.emit("x", 1);
    expect(heard).toEqual(["first"]);
    emitter.emit("x", 1);
    expect(heard).toEqual(["first", "added"]);
  });

  it("that wait for one event get it, or learn that it will not come", async () => {
    const emitter = new Emitter();
    const next = emitter.next("x");
    emitter.emit("x", 7);
    expect(await next).toBe(7);
    const end = new AbortController();
    const aborted = emitter.next("x", end.signal);
    end.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    const over = emitter.next("x");
    emitter.end({ code: "kicked", message: "rude", hint: "" });
    await expect(over).rejects.toMatchObject({ code: "kicked", message: "rude" });
    await expect(emitter.next("x")).rejects.toMatchObject({ code: "kicked" });
  });
});

/** A room whose steps its test makes due. */
class FakeSteps implements Steps {
  readonly tickHz = 50;
  due = 0;
  nextMs = 20;
  updates = 0;
  isEnded = false;
  readonly rearm = vi.fn();

  update(): void {
    this.updates += 1;
  }
  tick(): boolean {
    return this.due > 0 && this.due-- > 0;
  }
  untilNextTickMs(): number {
    return this.nextMs;
  }
  isOver(): boolean {
    return this.isEnded;
  }
}

describe("a loop", () => {
  let frames: ((time: number) => void)[];
  const document = { hidden: false };

  beforeEach(() => {
    vi.useFakeTimers();
    frames = [];
    document.hidden = false;
    vi.stubGlobal("document", document);
    vi.stubGlobal("requestAnimationFrame", (callback: (time: number) => void) => frames.push(callback));
    vi.stubGlobal("cancelAnimationFrame", () => {
      frames = [];
    });
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  const frame = () => {
    vi.advanceTimersByTime(16);
    for (const callback of frames.splice(0)) callback(performance.now());
  };

  it("runs the steps that are due in each frame, and draws after them", () => {
    const steps = new FakeSteps();
    const ran: string[] = [];
    const runner = new LoopRunner(steps, { tick: () => void ran.push("tick"), draw: ({ alpha }) => void ran.push(`draw ${alpha}`) });
    steps.due = 2;
    steps.nextMs = 5;
    frame();
    expect(ran).toEqual(["tick", "tick", "draw 0.75"]);
    runner.stop();
    frame();
    expect(ran).toHaveLength(3);
  });

  it("leaves steps to the frames while they come", () => {
    const steps = new FakeSteps();
    const tick = vi.fn();
    const runner = new LoopRunner(steps, { tick });
    frame();
    steps.due = 1;
    runner.beat();
    expect(tick).not.toHaveBeenCalled();
    expect(runner.beatInMs()).toBe(100);
    frame();
    expect(tick).toHaveBeenCalledTimes(1);
  });

  it("runs steps from beats while the page is hidden, and draws nothing", () => {
    const steps = new FakeSteps();
    const [tick, draw] = [vi.fn(), vi.fn()];
    const runner = new LoopRunner(steps, { tick, draw });
    frame();
    draw.mockClear();
    document.hidden = true;
    expect(runner.beatInMs()).toBe(20);
    steps.due = 3;
    runner.beat();
    expect(tick).toHaveBeenCalledTimes(3);
    expect(draw).not.toHaveBeenCalled();
  });

  it("runs steps from beats where frames stopped without a word", () => {
    const steps = new FakeSteps();
    const tick = vi.fn();
    const runner = new LoopRunner(steps, { tick });
    frame();
    vi.advanceTimersByTime(100);
    steps.due = 1;
    runner.beat();
    expect(tick).toHaveBeenCalledTimes(1);
  });

  it("runs everything from beats where there are no frames at all", () => {
    vi.stubGlobal("requestAnimationFrame", undefined);
    const steps = new FakeSteps();
    const tick = vi.fn();
    const runner = new LoopRunner(steps, { tick });
    steps.due = 1;
    runner.beat();
    expect(tick).toHaveBeenCalledTimes(1);
    runner.stop();
    expect(runner.beatInMs()).toBe(Number.POSITIVE_INFINITY);
  });

  it("goes on when the game's step throws, and reports it", () => {
    const reported = vi.fn();
    vi.stubGlobal("reportError", reported);
    const steps = new FakeSteps();
    let ran = 0;
    new LoopRunner(steps, {
      tick: () => {
        ran += 1;
        throw new Error("the game's own fault");
      },
    });
    steps.due = 2;
    frame();
    steps.due = 1;
    frame();
    expect(ran).toBe(3);
    expect(reported).toHaveBeenCalledTimes(3);
  });
});
