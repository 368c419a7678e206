// Components: named lists of fields, whose types are inferred.

import { badArgument } from "../error.js";
import type { Data } from "../value/data.js";
import type { Field } from "./fields.js";

/** The fields of a component, by name. */
export type Fields = Readonly<Record<string, Field<unknown>>>;

/** A component. */
export interface Component<N extends string = string, F extends Fields = Fields> {
  readonly name: N;
  readonly fields: F;
  readonly options: ComponentOptions;
}

/** How a component is sent. */
export interface ComponentOptions {
  /** Which entities come first where bandwidth is short: more is sooner. Default: 1. */
  priority?: number;
  /** Who gets it. Default: `"everyone"`. */
  condition?: "everyone" | "owner" | "not-owner";
}

/** The type of a component's values. */
export type Infer<C> = C extends Component<string, infer F> ? { -readonly [K in keyof F]: ValueOf<F[K]> } : never;

/** The type of a field's values. */
export type ValueOf<F> = F extends Field<infer T> ? T : never;

/** Which entities a member receives: those near one of its own. */
export interface Interest {
  readonly component: string;
  readonly field: string;
  readonly radius: number;
  readonly leave?: number;
}

/** Says what a component is. */
export function component<const N extends string, const F extends Fields>(name: N, fields: F, options: ComponentOptions = {}): Component<N, F> {
  for (const field of Object.keys(fields)) {
    // JavaScript sorts such names, and the order of fields is a part of the schema.
    if (/^(0|[1-9]\d*)$/.test(field)) {
      throw badArgument(`the field ${JSON.stringify(field)} of the component ${JSON.stringify(name)} is a number`, "give it a name");
    }
  }
  return { name, fields, options };
}

/** A member receives entities within `radius` of one of its own, until they are beyond `leave`. */
export function near<C extends Component>(of: C, field: keyof C["fields"] & string, radius: number, leave?: number): Interest {
  return { component: of.name, field, radius, ...(leave === undefined ? {} : { leave }) };
}

/** The error that others may see in a field before they are told. */
export interface Tolerance {
  /** In the unit of the field; for points and directions the length of the difference. Default: the field's resolution. */
  readonly offBy?: number;
  /** In radians, for angles and rotations. Default: the field's resolution. */
  readonly turnedBy?: number;
  /**
   * For how many ms a smaller difference may be seen, and how late bool, int, names and texts may be. Default: the longest interval
   * for the former, no delay for the latter.
   */
  readonly lateByMs?: number;
  /** A position that moves farther within one step is a teleport. Default: never. */
  readonly jump?: number;
  /** How urgent its changes are to distant players: 512 is twice as urgent as 256. Default: the component's priority, 256. */
  readonly priority?: number;
}

/** What each player says of itself, and how precisely others must know it. */
export interface OwnDefinition {
  readonly component: Component;
  /** By field. */
  readonly tolerance?: Readonly<Record<string, Tolerance>>;
  /** The longest time before a changed state is sent, in ms, up to 500. Default: 500. */
  readonly longestIntervalMs?: number;
  /** Others get it the more rarely the farther away they are, from `within` on four times a second. `field` is its position. */
  readonly radius?: { readonly field: string; readonly within: number };
}

/** An own state as the core knows it. */
export function ownOf(own: Component | OwnDefinition): { component: Component; given: Data } {
  const { component, ...more } = "component" in own ? own : { component: own };
  return { component, given: { ...describe(component), ...(more as Record<string, Data>) } };
}

/** A schema as the core knows it. */
export function schemaOf(components: readonly Component[], interest: Interest | undefined): Data {
  return { components: components.map(describe), interest: interest as Data | undefined };
}

function describe({ name, fields, options }: Component): Record<string, Data> {
  return {
    name,
    fields: Object.entries(fields).map(([field, { spec }]) => ({ name: field, ...spec })),
    ...(options as Record<string, Data>),
  };
}
