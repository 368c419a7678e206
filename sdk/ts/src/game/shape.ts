// Shapes: what a game says of its values. A claim is checked by nobody; a validator is asked of all that others sent.

import { ParlorError, badArgument } from "../error.js";

/** A claim about a type. See `type`. */
export interface Typed<T> {
  readonly "~claims"?: T;
}

/** A validator of any library that follows Standard Schema: zod, valibot, arktype. */
export interface StandardSchema<T = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    /** Says what a value is, or why it is not. */
    validate(value: unknown): StandardResult<T> | Promise<StandardResult<T>>;
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
  };
}

type StandardResult<T> = { readonly value: T; readonly issues?: undefined } | { readonly issues: readonly { readonly message: string }[] };

/** What stands where a game names a type. */
export type Shape<T = unknown> = Typed<T> | StandardSchema<T>;

/** The type of a shape. */
export type ShapeOf<S> = S extends { readonly "~standard": { readonly types?: { readonly output: infer T } | undefined } }
  ? T
  : S extends Typed<infer T>
    ? T
    : never;

/** Claims a type: `type<{ x: number }>()`. Nothing checks it; pass a validator where others' values must be checked. */
export function type<T>(): Typed<T> {
  return {};
}

/** Checks one value: what it is, or why it is not. */
export type Check = (value: unknown) => { value: unknown } | { why: string };

/** The check of a shape; undefined for a claim. */
export function checkOf(shape: Shape | undefined): Check | undefined {
  if (shape === undefined || !("~standard" in shape)) return undefined;
  const standard = shape["~standard"];
  return (value) => {
    const result = standard.validate(value);
    if (result instanceof Promise) {
      throw new ParlorError("bad_argument", "a validator of the game answers later", "use a synchronous schema: a room reads its state at once");
    }
    return result.issues === undefined
      ? { value: result.value }
      : { why: result.issues.map((issue) => issue.message).join("; ") || "it was refused" };
  };
}

/** The checks of a game's state, by pattern. */
export class KeyChecks {
  readonly #exact = new Map<string, Check>();
  readonly #patterns: { before: string; after: string; check: Check }[] = [];

  constructor(state: Readonly<Record<string, Shape>> = {}) {
    for (const [pattern, shape] of Object.entries(state)) {
      const parts = pattern.split("*");
      if (pattern === "" || parts.length > 2) {
        throw badArgument(`the pattern ${JSON.stringify(pattern)} of the state is empty or has several *`, "write \"round\" or \"tank/*\"");
      }
      const check = checkOf(shape);
      if (check === undefined) continue;
      if (parts.length === 1) this.#exact.set(pattern, check);
      else this.#patterns.push({ before: parts[0]!, after: parts[1]!, check });
    }
  }

  /** The check of a key, if its value is to be checked. */
  of(key: string): Check | undefined {
    const exact = this.#exact.get(key);
    if (exact !== undefined || this.#patterns.length === 0) return exact;
    return this.#patterns.find(
      ({ before, after }) => key.length >= before.length + after.length && key.startsWith(before) && key.endsWith(after),
    )?.check;
  }
}
