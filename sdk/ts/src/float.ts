// `float`: a number that must travel as a Float, and a field of such numbers.

import { Float } from "./value/data.js";
import { type Field, floatField } from "./world/fields.js";

/**
 * Boxes a number that must travel as a Float though it is whole: Rust's `f32` and `f64` take either, a Rust program
 * that reads a bare `Value` may not.
 */
export function float(value: number): number;
/** A field of a component: a number from `min` to `max`, rounded to a multiple of `step`. */
export function float(min: number, max: number, step: number): Field<number>;
export function float(value: number, max?: number, step?: number): number | Field<number> {
  if (max === undefined || step === undefined) return new Float(value) as unknown as number;
  return floatField(value, max, step);
}
