import { describe, expect, it } from "vitest";
import { type AnyOptions, checkNames, coreOptions, optionNames } from "../../src/room/options.js";

const hosts = (options: AnyOptions) => coreOptions("dots", { intent: "host" }, options) as Record<string, unknown>;
const joins = (options: AnyOptions) => coreOptions("dots", { intent: "join", code: "K7QM" }, options) as Record<string, unknown>;

describe("the options of a room", () => {
  it("have presets, which single options change", () => {
    expect(hosts({ preset: "action" })).toMatchObject({ tickHz: 60, simulationDelay: 4, resimulate: 8, lead: true });
    expect(hosts({ preset: "action", tickHz: 50, lead: false })).toMatchObject({ tickHz: 50, resimulate: 8, lead: false });
    expect(hosts({ preset: "calm" })).toMatchObject({ tickHz: 10, lead: undefined });
    // The host's decides the rate; what a member does as the next host is its own.
    expect(joins({ preset: "action" })).toMatchObject({ simulationDelay: 4, resimulate: 8, lead: true });
    expect(joins({ preset: "action" })).not.toHaveProperty("tickHz");
    expect(() => hosts({ preset: "fast" as "calm" })).toThrow(expect.objectContaining({ code: "bad_argument" }));
    expect(() => hosts({ preset: "constructor" as "calm" })).toThrow(expect.objectContaining({ code: "bad_argument" }));
  });

  it("go to the core under their names, and those of the page do not", () => {
    const options: AnyOptions = {
      protocol: "reliable", renderDelay: { minMs: 50 }, spectators: 3, presenceMs: 1_500, graceMs: 0, migrationGraceMs: 500,
      rewindMaxMs: 100, whenHidden: "hand-over", via: "websocket", remember: "never", server: "here",
    };
    const given = hosts(options);
    for (const name of ["protocol", "renderDelay", "spectators", "presenceMs", "graceMs", "migrationGraceMs", "rewindMaxMs"]) {
      expect(given[name]).toEqual(options[name as keyof AnyOptions]);
    }
    for (const name of ["whenHidden", "via", "remember", "server", "preset"]) expect(given).not.toHaveProperty(name);
    expect(given).toMatchObject({ app: "dots", intent: "host", hostMigration: { silenceMs: 750 } });
    expect(hosts({ dedicated: true })).toMatchObject({ hostMigration: false });
  });

  it("have the invite's secret unless the game names another, and no host's settings in a join", () => {
    expect(coreOptions("dots", { intent: "join", code: "K7QM", secret: "s" }, {})).toMatchObject({ code: "K7QM", secret: "s" });
    expect(coreOptions("dots", { intent: "join", code: "K7QM", secret: undefined }, { secret: "t" })).toMatchObject({ secret: "t" });
    expect(joins({ spectate: true })).toMatchObject({ intent: "join", spectate: true });
    expect(joins({})).not.toHaveProperty("hostMigration");
    const refused = (options: AnyOptions, intent: "host" | "join" | "resume") => () => checkNames(options, optionNames(intent));
    expect(refused({ spectate: true }, "host")).toThrow(/no option `spectate`/);
    expect(refused({ spectators: 2 }, "join")).toThrow(/no option `spectators`/);
    expect(refused({ code: "K7QM" }, "resume")).toThrow(/no option `code`/);
    expect(refused({ spectate: true }, "join")).not.toThrow();
  });
});
