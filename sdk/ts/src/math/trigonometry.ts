// Sine, cosine, tangent, and their inverses.
//
// After the crate `libm` 0.2.16 (MIT), which is after musl and FreeBSD's msun:
// Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved. Developed at SunPro and SunSoft, Sun Microsystems, Inc. businesses.
// Permission to use, copy, modify, and distribute this software is freely granted, provided that this notice is preserved.

import { high, highPart, low } from "./bits.js";
import { reduce, y0, y1 } from "./reduce.js";

const PI = 3.141592653589793116;
const PI_LO = 1.2246467991473531772e-16;
const PIO2 = 1.570796326794896558;
const PIO2_LO = 6.12323399573676603587e-17;
const PIO4 = 7.85398163397448278999e-1;
const PIO4_LO = 3.06161699786838301793e-17;

/** Below this high word an argument is at most π/4. */
const QUARTER = 0x3fe921fb;
const INFINITE = 0x7ff00000;

/** The sine, of radians. */
export function sin(x: number): number {
  const ix = high(x) & 0x7fffffff;
  if (ix <= QUARTER) return ix < 0x3e500000 ? x : sine(x, 0, false);
  return ix >= INFINITE ? NaN : ofQuarter(reduce(x));
}

/** The cosine, of radians. */
export function cos(x: number): number {
  const ix = high(x) & 0x7fffffff;
  if (ix <= QUARTER) return ix < 0x3e46a09e ? 1 : cosine(x, 0);
  return ix >= INFINITE ? NaN : ofQuarter(reduce(x) + 1);
}

/** The sine of what was reduced, so many quarters of a turn further. */
function ofQuarter(n: number): number {
  const value = (n & 1) === 0 ? sine(y0, y1, true) : cosine(y0, y1);
  return (n & 2) === 0 ? value : -value;
}

/** The tangent, of radians. */
export function tan(x: number): number {
  const ix = high(x) & 0x7fffffff;
  if (ix <= QUARTER) return ix < 0x3e400000 ? x : tangent(x, 0, false);
  if (ix >= INFINITE) return NaN;
  const isOdd = (reduce(x) & 1) === 1;
  return tangent(y0, y1, isOdd);
}

function sine(x: number, y: number, hasRest: boolean): number {
  const z = x * x;
  const w = z * z;
  const r =
    8.33333333332248946124e-3 + z * (-1.98412698298579493134e-4 + z * 2.75573137070700676789e-6) +
    z * w * (-2.50507602534068634195e-8 + z * 1.58969099521155010221e-10);
  const v = z * x;
  const s1 = -1.66666666666666324348e-1;
  return hasRest ? x - (z * (0.5 * y - v * r) - y - v * s1) : x + v * (s1 + z * r);
}

function cosine(x: number, y: number): number {
  const z = x * x;
  const w = z * z;
  const r =
    z * (4.16666666666666019037e-2 + z * (-1.38888888888741095749e-3 + z * 2.48015872894767294178e-5)) +
    w * w * (-2.75573143513906633035e-7 + z * (2.08757232129817482790e-9 + z * -1.13596475577881948265e-11));
  const half = 0.5 * z;
  const one = 1 - half;
  return one + (1 - one - half + (z * r - x * y));
}

const T = [
  3.33333333333334091986e-1, 1.33333333333201242699e-1, 5.39682539762260521377e-2, 2.18694882948595424599e-2, 8.86323982359930005737e-3,
  3.59207910759131235356e-3, 1.45620945432529025516e-3, 5.88041240820264096874e-4, 2.46463134818469906812e-4, 7.817944429395570923e-5,
  7.14072491382608190305e-5, -1.85586374855275456654e-5, 2.59073051863633712884e-5,
] as const;

function tangent(x: number, y: number, isOdd: boolean): number {
  const hx = high(x);
  const isBig = (hx & 0x7fffffff) >= 0x3fe59428;
  if (isBig) {
    if (hx < 0) {
      x = -x;
      y = -y;
    }
    x = PIO4 - x + (PIO4_LO - y);
    y = 0;
  }
  const z = x * x;
  const w = z * z;
  const odd = T[1] + w * (T[3] + w * (T[5] + w * (T[7] + w * (T[9] + w * T[11]))));
  const even = z * (T[2] + w * (T[4] + w * (T[6] + w * (T[8] + w * (T[10] + w * T[12])))));
  const s = z * x;
  const r = y + z * (s * (odd + even) + y) + s * T[0];
  const sum = x + r;
  if (isBig) {
    const sign = isOdd ? -1 : 1;
    const v = sign - 2 * (x + (r - (sum * sum) / (sum + sign)));
    return hx < 0 ? -v : v;
  }
  if (!isOdd) return sum;
  // -1 / (x + r), more precisely than a division gives it.
  const w0 = highPart(sum);
  const v = r - (w0 - x);
  const a = -1 / sum;
  const a0 = highPart(a);
  return a0 + a * (1 + a0 * w0 + a0 * v);
}

const AT = [
  3.33333333333329318027e-1, -1.99999999998764832476e-1, 1.42857142725034663711e-1, -1.11111104054623557880e-1, 9.09088713343650656196e-2,
  -7.69187620504482999495e-2, 6.66107313738753120669e-2, -5.83357013379057348645e-2, 4.97687799461593236017e-2, -3.65315727442169155270e-2,
  1.62858201153657823623e-2,
] as const;
const ATAN_HI = [4.63647609000806093515e-1, PIO4, 9.82793723247329054082e-1, PIO2] as const;
const ATAN_LO = [2.26987774529616870924e-17, PIO4_LO, 1.39033110312309984516e-17, PIO2_LO] as const;

/** The angle whose tangent is `x`, from -π/2 to π/2. */
export function atan(x: number): number {
  const hx = high(x);
  const ix = hx & 0x7fffffff;
  if (ix >= 0x44100000) return isNaN(x) ? x : hx < 0 ? -PIO2 : PIO2;
  let id = -1;
  if (ix < 0x3fdc0000) {
    if (ix < 0x3e400000) return x;
  } else {
    x = Math.abs(x);
    if (ix < 0x3fe60000) [id, x] = [0, (2 * x - 1) / (2 + x)];
    else if (ix < 0x3ff30000) [id, x] = [1, (x - 1) / (x + 1)];
    else if (ix < 0x40038000) [id, x] = [2, (x - 1.5) / (1 + 1.5 * x)];
    else [id, x] = [3, -1 / x];
  }
  const z = x * x;
  const w = z * z;
  const s1 = z * (AT[0] + w * (AT[2] + w * (AT[4] + w * (AT[6] + w * (AT[8] + w * AT[10])))));
  const s2 = w * (AT[1] + w * (AT[3] + w * (AT[5] + w * (AT[7] + w * AT[9]))));
  if (id < 0) return x - x * (s1 + s2);
  const angle = ATAN_HI[id]! - (x * (s1 + s2) - ATAN_LO[id]! - x);
  return hx < 0 ? -angle : angle;
}

/** The angle of the direction `(x, y)`, from -π to π. */
export function atan2(y: number, x: number): number {
  if (isNaN(x) || isNaN(y)) return NaN;
  if (x === 1) return atan(y);
  const isLeft = high(x) < 0;
  const isDown = high(y) < 0;
  const [ax, ay] = [Math.abs(x), Math.abs(y)];
  const signed = (angle: number) => (isDown ? -angle : angle);
  if (ay === 0) return isLeft ? signed(PI) : y;
  if (ax === 0) return signed(PI / 2);
  if (ax === Infinity) {
    if (ay === Infinity) return signed(isLeft ? (3 * PI) / 4 : PI / 4);
    return signed(isLeft ? PI : 0);
  }
  const [ix, iy] = [high(ax), high(ay)];
  if (ix + (64 << 20) < iy || ay === Infinity) return signed(PI / 2);
  const z = isLeft && iy + (64 << 20) < ix ? 0 : atan(Math.abs(y / x));
  if (!isLeft) return signed(z);
  return isDown ? z - PI_LO - PI : PI - (z - PI_LO);
}

/** The angle whose sine is `x`, from -π/2 to π/2. */
export function asin(x: number): number {
  const hx = high(x);
  const ix = hx & 0x7fffffff;
  if (ix >= 0x3ff00000) return Math.abs(x) === 1 ? x * PIO2 : NaN;
  if (ix < 0x3fe00000) return ix >= 0x00100000 && ix < 0x3e500000 ? x : x + x * ratio(x * x);
  const z = (1 - Math.abs(x)) * 0.5;
  const s = Math.sqrt(z);
  const r = ratio(z);
  let angle: number;
  if (ix >= 0x3fef3333) {
    angle = PIO2 - (2 * (s + s * r) - PIO2_LO);
  } else {
    const f = highPart(s);
    const c = (z - f * f) / (s + f);
    angle = 0.5 * PIO2 - (2 * s * r - (PIO2_LO - 2 * c) - (0.5 * PIO2 - 2 * f));
  }
  return hx < 0 ? -angle : angle;
}

/** The angle whose cosine is `x`, from 0 to π. */
export function acos(x: number): number {
  const hx = high(x);
  const ix = hx & 0x7fffffff;
  if (ix >= 0x3ff00000) {
    if (((ix - 0x3ff00000) | low(x)) !== 0) return NaN;
    return hx < 0 ? 2 * PIO2 : 0;
  }
  if (ix < 0x3fe00000) return ix <= 0x3c600000 ? PIO2 : PIO2 - (x - (PIO2_LO - x * ratio(x * x)));
  if (hx < 0) {
    const z = (1 + x) * 0.5;
    const s = Math.sqrt(z);
    return 2 * (PIO2 - (s + (ratio(z) * s - PIO2_LO)));
  }
  const z = (1 - x) * 0.5;
  const s = Math.sqrt(z);
  const f = highPart(s);
  const c = (z - f * f) / (s + f);
  return 2 * (f + (ratio(z) * s + c));
}

/** What asin and acos have in common. */
function ratio(z: number): number {
  const p =
    z *
    (1.66666666666666657415e-1 + z * (-3.25565818622400915405e-1 + z * (2.01212532134862925881e-1 + z * (-4.00555345006794114027e-2 +
      z * (7.91534994289814532176e-4 + z * 3.47933107596021167570e-5)))));
  const q =
    1 +
    z * (-2.40339491173441421878 + z * (2.02094576023350569471 + z * (-6.88283971605453293030e-1 + z * 7.70381505559019352791e-2)));
  return p / q;
}
