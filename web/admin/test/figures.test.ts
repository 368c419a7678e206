import { describe, expect, it } from "vitest";
import { claims } from "../src/api.ts";
import { ago, bytes, figures, rate, type Status } from "../src/figures.ts";

const status: Status = {
  store_commits: 10, store_writes: 100, store_failed: 0, store_turned_away: 0, store_waiting: 3, rooms_put_off: 0,
  store_bytes: 95, store_bytes_max: 100, store_refused_full: 0, store_refused_quota: 2, kept_matches_refused: 0,
  store_rows: { accounts: 1_234 }, open_rooms: 7, room_bytes: 0, log_bytes: 0, save_bytes: 0, object_bytes: 0,
  webhooks_waiting: 0, webhooks_dropped: 0,
};
const named = (all: ReturnType<typeof figures>, name: string) => all.find((it) => it.name === name);

describe("figures", () => {
  it("have the unit that a person reads", () => {
    expect([0, 1_023, 1_024, 1_536, 200 * 1024, 5 * 1024 ** 4].map(bytes)).toEqual(["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "200 KiB", "5.0 TiB"]);
    expect([-5, 59_400, 60_000, 7_300_000, 90_000_000].map(ago)).toEqual(["0 s", "59 s", "1 min", "2 h", "1 d"]);
  });

  it("count a second between two answers, and nothing across a restart", () => {
    expect(rate(100, 400, 2_000)).toBe("150");
    expect(rate(100, 103, 2_000)).toBe("1.5");
    expect(rate(100, 5, 2_000)).toBe("–");
    expect(rate(100, 100, 0)).toBe("–");
  });

  it("say what somebody should look into", () => {
    const first = figures(status, undefined, 0);
    expect(named(first, "accounts")).toEqual({ name: "accounts", text: "1,234" });
    expect(named(first, "writes a second")?.text).toBe("–");
    expect(first.filter((it) => it.isBad).map((it) => it.name)).toEqual(["of 100 B of the store", "writes refused: quotas"]);
    expect(named(figures({ ...status, store_writes: 300 }, status, 2_000), "writes a second")?.text).toBe("100");
  });
});

describe("a token", () => {
  it("says whose it is, or nothing", () => {
    const part = btoa(JSON.stringify({ aud: "tanks", role: "admin" })).replaceAll("=", "");
    expect(claims(`x.${part}.y`)).toEqual({ aud: "tanks", role: "admin" });
    for (const bad of ["", "a.b", "a.!!.c", `a.${btoa("3")}.c`, `a.${btoa("null")}.c`]) expect(claims(bad)).toEqual({});
  });
});
