import { describe, expectTypeOf, it } from "vitest";
import { type Data, defineGame, host, type Player, type Room, type } from "../../src/api.js";
import { useEvent, useKey, useKeys, usePlayers, useRoom, useRoomContext, useRoomStatus } from "../../src/react/index.js";

type Tank = { x: number };
const game = defineGame("tanks", { state: { round: type<number>(), "tank/*": type<Tank>() }, messages: { chat: type<string>() } });

describe("the hooks of a game that says its types", () => {
  const { room, status, error, closed } = useRoom((signal) => game.host({ signal }), []);

  it("know them", () => {
    expectTypeOf(status).toEqualTypeOf<"idle" | "connecting" | "open" | "closed">();
    expectTypeOf(error?.message).toEqualTypeOf<string | undefined>();
    expectTypeOf(closed?.message).toEqualTypeOf<string | undefined>();
    expectTypeOf(useKey(room, "round")).toEqualTypeOf<number | undefined>();
    expectTypeOf(useKey(room, `tank/${1 as number}`)).toEqualTypeOf<Tank | undefined>();
    expectTypeOf(useKeys(room, "tank/")).toEqualTypeOf<ReadonlyMap<string, Tank>>();
    // @ts-expect-error a misspelt key
    useKey(room, "rond");
    // @ts-expect-error a prefix that no key has
    useKeys(room, "bird/");
    expectTypeOf(usePlayers(room)).toEqualTypeOf<readonly Player[]>();
    expectTypeOf(useRoomStatus(room)).toEqualTypeOf<"open" | "reconnecting" | "migrating" | "closed" | undefined>();
    useEvent(room, "message", ({ kind, value }) => {
      expectTypeOf(kind).toEqualTypeOf<"chat">();
      expectTypeOf(value).toEqualTypeOf<string>();
    });
  });

  it("have the room where the state says that it is open", () => {
    const state = useRoom((signal) => game.host({ signal }), []);
    if (state.status === "open") state.room.set("round", 1);
    // @ts-expect-error it may not be there
    else state.room.set("round", 1);
  });
});

describe("the hooks of an untyped room", () => {
  it("take types as claims", () => {
    const { room } = useRoom((signal) => host("dots", { signal }), []);
    expectTypeOf(useKey(room, "x")).toEqualTypeOf<Data | undefined>();
    expectTypeOf(useKey<number>(room, "x")).toEqualTypeOf<number | undefined>();
    expectTypeOf(useKeys<Tank>(room, "tank/")).toEqualTypeOf<ReadonlyMap<string, Tank>>();
    expectTypeOf(useRoomContext()).toEqualTypeOf<Room | undefined>();
  });
});
