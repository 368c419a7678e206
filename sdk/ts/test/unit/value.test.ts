import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { ParlorError } from "../../src/error.js";
import { float } from "../../src/float.js";
import type { Data } from "../../src/value/data.js";
import { decode } from "../../src/value/decode.js";
import { encode } from "../../src/value/encode.js";
import { compareUtf8, utf8Length } from "../../src/value/names.js";
import { random, randomValue, seed } from "../support/random.js";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const bytes = (text: string) => new Uint8Array(Buffer.from(text, "hex"));
const nested = (depth: number): Data => (depth === 0 ? [] : [nested(depth - 1)]);

function refusal(run: () => unknown): ParlorError {
  try {
    run();
  } catch (error) {
    if (error instanceof ParlorError) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

// Each line of the table in PROTOCOL.md.
const FORMS: [string, Data, string][] = [
  ["the least short Int", 0, "00"],
  ["the largest short Int", 127, "7f"],
  ["-1", -1, "ff"],
  ["the least of one byte", -32, "e0"],
  ["an Int of one byte more", -33, "c3df"],
  ["the least of one byte more", -128, "c380"],
  ["an Int of two bytes", 128, "c48000"],
  ["an Int of two bytes, negative", -32_768, "c40080"],
  ["an Int of four bytes", 32_768, "c500800000"],
  ["an Int of four bytes, negative", -2_147_483_648, "c500000080"],
  ["an Int of eight bytes", 2_147_483_648, "c60000008000000000"],
  ["an Int that a number does not hold", 2n ** 62n + 1n, "c60100000000000040"],
  ["a Float of four bytes", 0.5, "c70000003f"],
  ["a Float of eight bytes", 0.1, "c89a9999999999b93f"],
  ["null", null, "c0"],
  ["false", false, "c1"],
  ["true", true, "c2"],
  ["no text", "", "a0"],
  ["short text", "hi", "a26869"],
  ["text of 31 bytes", "x".repeat(31), `bf${"78".repeat(31)}`],
  ["text that begins with a byte order mark", "\ufeffhi", "a5efbbbf6869"],
  ["text of 32 bytes", "x".repeat(32), `c920${"78".repeat(32)}`],
  ["bytes", new Uint8Array([1, 2]), "ca020102"],
  ["a list", [1, "a"], "9201a161"],
  ["a list of 16", new Array<Data>(16).fill(0), `cb10${"00".repeat(16)}`],
  ["a map", { a: 1 }, "81016101"],
  ["a name of 63 bytes", { ["n".repeat(63)]: 0 }, `813f${"6e".repeat(63)}00`],
  ["a name of 64 bytes", { ["n".repeat(64)]: 0 }, `814040${"6e".repeat(64)}00`],
  ["a name that begins with a byte order mark", { "\ufeffn": 0 }, "8104efbbbf6e00"],
  ["an empty map", {}, "80"],
];

describe("a value", () => {
  it.each(FORMS)("has one form: %s", (_, value, form) => {
    expect(hex(encode(value))).toBe(form);
    expect(decode(bytes(form))).toEqual(value);
  });

  it("comes back as it went, whatever it is", () => {
    console.log(`PARLOR_SEED=${seed}`);
    const next = random(seed);
    for (let i = 0; i < 10_000; i++) {
      const value = randomValue(next);
      const encoded = encode(value);
      const back = decode(encoded);
      if (!isDeepStrictEqual(back, value)) expect(back, `value ${i} of seed ${seed}`).toEqual(value);
      if (hex(encode(back)) !== hex(encoded)) expect(hex(encode(back))).toBe(hex(encoded));
    }
  });

  it("has its fields in the order of their UTF-8 bytes", () => {
    const value = { "\uffff": 1, "😀": 2, b: 3, a: 4, "\ue000": 5 };
    const names = Object.keys(decode(encode(value)) as object);
    const byBytes = Object.keys(value).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect(names).toEqual(byBytes);
    expect([...Object.keys(value)].sort(compareUtf8)).toEqual(byBytes);
  });

  it("keeps apart shapes whose names look alike when they are joined", () => {
    const [a, b] = [{ b: 1, "a\u0000": 2 }, { "b\u0000a": 1, "": 2 }];
    for (const value of [a, b, { b: 3, a: 4 }]) expect(decode(encode(value))).toEqual(value);
    expect(decode(encode({ c: 1, "b\u0000a": 2 }))).toEqual({ c: 1, "b\u0000a": 2 });
    expect(decode(encode({ "c\u0000b": 1, a: 2 }))).toEqual({ "c\u0000b": 1, a: 2 });
  });

  it("has fields with names like numbers, whose order JavaScript changes", () => {
    const form = hex(encode({ 9: "a", 10: "b" }));
    expect(form).toBe("82023130a1620139a161");
    expect(decode(bytes(form))).toEqual({ 9: "a", 10: "b" });
  });

  it("leaves undefined fields out, and writes minus zero as zero", () => {
    expect(hex(encode({ a: undefined, b: -0 }))).toBe("81016200");
    expect(hex(encode(float(-0)))).toBe("c700000000");
  });

  it("keeps a whole number a Float if it is told to", () => {
    expect(hex(encode(float(1)))).toBe("c70000803f");
    expect(float(3) + 1).toBe(4);
  });

  it("takes a whole number beyond 2^53 as a Float, because it counts nothing there", () => {
    expect(hex(encode(2 ** 60))).toBe("c70000805d");
  });

  it("is never a prototype", () => {
    const evil = decode(bytes("81095f5f70726f746f5f5f81016101")) as object;
    expect(Object.getPrototypeOf(evil)).toBe(Object.prototype);
    expect(Object.keys(evil)).toEqual(["__proto__"]);
    expect(hex(encode(evil as Data))).toBe("81095f5f70726f746f5f5f81016101");
  });

  it.each([
    [{ a: [0, { b: Number.NaN }] }, "a[1].b is NaN"],
    [Number.POSITIVE_INFINITY, "the value is Infinity"],
    [{ f: () => 1 }, "f is a function"],
    [undefined, "the value is undefined"],
    [[undefined], "[0] is undefined"],
    [{ when: new Date(0) }, "when is a Date"],
    [new Map(), "the value is a Map"],
    [2n ** 63n, "the value is 9223372036854775808n"],
    ["\ud83d", "the value has half of a surrogate pair"],
    [{ "\udc00": 1 }, "half of a surrogate pair"],
    [nested(33), "nests deeper than 32"],
  ])("is refused with its path: %s", (value, message) => {
    const error = refusal(() => encode(value as Data));
    expect(error.code).toBe("bad_value");
    expect(error.message).toContain(message);
    expect(error.hint).not.toBe("");
  });

  it("is refused if it contains itself", () => {
    const loop: { me?: unknown } = {};
    loop.me = loop;
    expect(refusal(() => encode(loop as Data)).hint).toContain("contains itself");
    expect(hex(encode(1))).toBe("01");
  });

  it("may come from another realm", async () => {
    const { runInNewContext } = await import("node:vm");
    expect(hex(encode(runInNewContext("({ a: 1 })") as Data))).toBe("81016101");
  });

  it("nests as deep as the wire allows", () => {
    expect(decode(encode(nested(31)))).toEqual(nested(31));
    expect(refusal(() => decode(bytes("91".repeat(33) + "90"))).message).toContain("deeper");
  });
});

describe("bytes that are no value", () => {
  it.each([
    ["", "too early"],
    ["0000", "bytes follow"],
    ["cd", "of no kind"],
    ["c300", "longer than it needs"],
    ["c57f000000", "longer than it needs"],
    ["c60100000000000000", "longer than it needs"],
    ["c70000c07f", "NaN"],
    ["c700000080", "-0"],
    ["c8000000000000f03f", "longer than it needs"],
    ["c90168", "longer than it needs"],
    ["a1ff", "UTF-8"],
    ["82016100016100", "ascend"],
    ["82016200016100", "ascend"],
    ["8101ff00", "not UTF-8"],
    ["81400100", "cut off"],
    ["cbc0ffffffffffffff", "longer|early|cut off"],
    ["cb80ffffff", "too early"],
    ["cafffffffffffffff", "cut off"],
    ["cb00", "longer than it needs"],
  ])("are refused: %s", (form, why) => {
    const error = refusal(() => decode(bytes(form)));
    expect(error.code).toBe("bad_value");
    expect(error.message).toMatch(new RegExp(why));
  });

  it("never do worse than be refused, however they are cut or changed", () => {
    const next = random(seed + 1);
    for (let i = 0; i < 3_000; i++) {
      const form = encode(randomValue(next));
      const cut = form.slice(0, Math.floor(next() * form.length));
      const changed = form.slice();
      changed[Math.floor(next() * form.length)] = Math.floor(next() * 256);
      for (const attempt of [cut, changed]) {
        try {
          // A Float that is whole comes back as an Int: JavaScript has one kind of number.
          const value = decode(attempt);
          expect(isDeepStrictEqual(decode(encode(value)), value)).toBe(true);
        } catch (error) {
          if (!(error instanceof ParlorError)) throw error;
        }
      }
    }
  });
});

describe("text", () => {
  it("has a length in UTF-8", () => {
    for (const text of ["", "a", "é", "€", "😀", "a😀é"]) expect(utf8Length(text)).toBe(Buffer.byteLength(text));
  });
});
