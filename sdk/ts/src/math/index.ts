// The entry `parlor/math`: functions that give the same bits in every browser, in Node, and in Rust with the crate `libm`. `Math` has
// others in each engine. What IEEE 754 defines is the same everywhere: + - * / and `Math.sqrt`, `abs`, `floor`, `ceil`, `trunc`, `min`
// and `max`.

export { exp, hypot, log, pow } from "./power.js";
export { acos, asin, atan, atan2, cos, sin, tan } from "./trigonometry.js";
