// Kinds of fields: what a schema literal is made of. Pure data: the core makes the schema of it, and its hash.

import { badArgument } from "../error.js";
import type { Data } from "../value/data.js";

/** A point or direction in a plane. */
export interface Vec2 {
  x: number;
  y: number;
}
/** A point or direction in space. */
export interface Vec3 extends Vec2 {
  z: number;
}
/** A rotation as a unit quaternion. */
export interface Quat extends Vec3 {
  w: number;
}
/** Where a thing is, and how it is turned. */
export interface Transform {
  position: Vec3;
  rotation: Quat;
}
/** The same of a thing that moves. */
export interface Body extends Transform {
  velocity: Vec3;
  spin: Vec3;
}

/** How a field moves between updates. */
export type Interpolation = "none" | "linear" | "spherical" | "hermite";

/** A range of numbers and the step that they are rounded to. */
export interface Range {
  min: number;
  max: number;
  step: number;
}

/** How a field's value lies in a row: its numbers in order, or bytes behind them. */
export type Layout =
  | { form: "number" | "bool" }
  | { form: "names"; names: readonly string[] }
  | { form: "parts"; parts: readonly (readonly [name: string, layout: Layout])[] }
  | { form: "text" | "bytes" | "any" };

/** A field of a component, whose values are of type `T`. */
export interface Field<T> {
  /** The field as the core knows it. */
  readonly spec: Readonly<Record<string, Data>>;
  readonly layout: Layout;
  readonly "~value"?: T;
  /** How it moves between updates. Default: as its kind is. */
  interpolate(how: Interpolation): Field<T>;
  /** By how many steps of its resolution it may differ before it is sent. Default: 1. */
  threshold(steps: number): Field<T>;
  /** How urgent its changes are to distant players, in own states: 256 is normal. Default: the component's priority. */
  priority(priority: number): Field<T>;
}

function field<T>(spec: Record<string, Data>, layout: Layout): Field<T> {
  return {
    spec,
    layout,
    interpolate: (how) => field({ ...spec, interpolate: how }, layout),
    threshold: (steps) => field({ ...spec, threshold: steps }, layout),
    priority: (priority) => field({ ...spec, priority }, layout),
  };
}

const NUMBER: Layout = { form: "number" };
const parts = (...names: string[]): Layout => ({ form: "parts", parts: names.map((name) => [name, NUMBER]) });
const VEC3 = parts("x", "y", "z");
const QUAT = parts("x", "y", "z", "w");

/** True or false. */
export function bool(): Field<boolean> {
  return field({ kind: "bool" }, { form: "bool" });
}

/** A whole number from `min` to `max`. */
export function int(min: number, max: number): Field<number> {
  return field({ kind: "int", min, max }, NUMBER);
}

/** A number from `min` to `max`, rounded to a multiple of `step`. */
export function floatField(min: number, max: number, step: number): Field<number> {
  return field({ kind: "float", min, max, step }, NUMBER);
}

/** A number from `min` to `max` in so many bits. */
export function floatBits(min: number, max: number, bits: number): Field<number> {
  return field({ kind: "floatBits", min, max, bits }, NUMBER);
}

/** An angle in radians; a full turn has so many steps. */
export function angle(steps: number): Field<number> {
  return field({ kind: "angle", steps }, NUMBER);
}

/** A point in a plane. */
export function vec2(min: number, max: number, step: number): Field<Vec2> {
  return field({ kind: "vec2", min, max, step }, parts("x", "y"));
}

/** A point in space. */
export function vec3(min: number, max: number, step: number): Field<Vec3> {
  return field({ kind: "vec3", min, max, step }, VEC3);
}

/** A direction in space. */
export function unitVector(bits: number): Field<Vec3> {
  return field({ kind: "unitVector", bits }, VEC3);
}

/** A rotation in space. */
export function rotation(bits: number): Field<Quat> {
  return field({ kind: "rotation", bits }, QUAT);
}

/** Where a thing is, and how it is turned. */
export function transform(of: { position: Range; rotationBits: number }): Field<Transform> {
  const layout: Layout = { form: "parts", parts: [["position", VEC3], ["rotation", QUAT]] };
  return field({ kind: "transform", position: { ...of.position }, rotationBits: of.rotationBits }, layout);
}

/** The same of a thing that moves. */
export function body(of: { position: Range; rotationBits: number; velocity: Range; spin: Range }): Field<Body> {
  const { position, rotationBits, velocity, spin } = of;
  const spec = { kind: "body", position: { ...position }, rotationBits, velocity: { ...velocity }, spin: { ...spin } };
  return field(spec, { form: "parts", parts: [["position", VEC3], ["rotation", QUAT], ["velocity", VEC3], ["spin", VEC3]] });
}

/** One of these words. */
export function oneOf<const N extends string>(...names: N[]): Field<N> {
  if (names.length === 0) throw badArgument("oneOf has no names", "name at least one: oneOf(\"idle\", \"walk\")");
  return field({ kind: "oneOf", names: [...names] }, { form: "names", names });
}

/** Text of at most so many bytes. */
export function text(bytesMax: number): Field<string> {
  return field({ kind: "text", bytesMax }, { form: "text" });
}

/** Bytes, at most so many. */
export function bytes(bytesMax: number): Field<Uint8Array> {
  return field({ kind: "bytes", bytesMax }, { form: "bytes" });
}

/** Any value of at most so many bytes. `T` is a claim that nothing checks. */
export function any<T = Data>(bytesMax: number): Field<T> {
  return field({ kind: "any", bytesMax }, { form: "any" });
}
