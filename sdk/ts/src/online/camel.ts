// Names of the server's JSON as TypeScript writes them: `state_version` is `stateVersion`. What games put in stays as it is.

/** Fields whose content is a game's own. */
type Own = "state" | "optimistic_state" | "metadata" | "data" | "body" | "changed" | "extra";

const OWN: ReadonlySet<string> = new Set<Own>(["state", "optimistic_state", "metadata", "data", "body", "changed", "extra"]);

type Name<K> = K extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Name<Tail>>}` : K;

/** A type of the server with the names of TypeScript. */
export type Camel<T> = T extends readonly (infer Item)[]
  ? readonly Camel<Item>[]
  : T extends object
    ? { readonly [K in keyof T as Name<K>]: K extends Own ? T[K] : Camel<T[K]> }
    : T;

/** A value of the server with the names of TypeScript. */
export function camel<T>(value: T): Camel<T> {
  if (Array.isArray(value)) return value.map(camel) as Camel<T>;
  if (typeof value !== "object" || value === null) return value as Camel<T>;
  const fields = Object.entries(value).map(([name, it]) => [name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()), OWN.has(name) ? it : camel(it)]);
  return Object.fromEntries(fields) as Camel<T>;
}
