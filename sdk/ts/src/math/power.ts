// Exponentials, logarithms, powers, and the length of a vector.
//
// After the crate `libm` 0.2.16 (MIT), which is after musl and FreeBSD's msun:
// Copyright (C) 1993, 2004 by Sun Microsystems, Inc. All rights reserved. Developed at SunPro and SunSoft, Sun Microsystems, Inc. businesses.
// Permission to use, copy, modify, and distribute this software is freely granted, provided that this notice is preserved.

import { high, highPart, low, ofWords, scalbn, twoTo } from "./bits.js";

const LN2_HI = 6.93147180369123816490e-1;
const LN2_LO = 1.90821492927058770002e-10;
const INV_LN2 = 1.442695040888963387;

/** The remainder's polynomial of `exp` and `pow`. */
function remainder(xx: number): number {
  return (
    xx *
    (1.66666666666666019037e-1 + xx * (-2.77777777770155933842e-3 + xx * (6.61375632143793436117e-5 + xx * (-1.65339022054652515390e-6 +
      xx * 4.13813679705723846039e-8))))
  );
}

/** e to the power of `x`. */
export function exp(x: number): number {
  const hx = high(x);
  const ix = hx & 0x7fffffff;
  if (ix >= 0x4086232b) {
    if (isNaN(x)) return x;
    if (x > 709.782712893383973096) return Infinity;
    if (x < -745.13321910194110842) return 0;
  }
  let k = 0;
  let hi = x;
  let lo = 0;
  if (ix > 0x3fd62e42) {
    k = ix >= 0x3ff0a2b2 ? (INV_LN2 * x + (hx < 0 ? -0.5 : 0.5)) | 0 : hx < 0 ? -1 : 1;
    hi = x - k * LN2_HI;
    lo = k * LN2_LO;
    x = hi - lo;
  } else if (ix <= 0x3e300000) {
    return 1 + x;
  }
  const c = x - remainder(x * x);
  const y = 1 + ((x * c) / (2 - c) - lo + hi);
  return k === 0 ? y : scalbn(y, k);
}

/** The natural logarithm. */
export function log(x: number): number {
  let hx = high(x);
  let k = 0;
  if (hx < 0x00100000) {
    if (x === 0) return -Infinity;
    if (hx < 0) return NaN;
    k = -54;
    x *= 18_014_398_509_481_984;
    hx = high(x);
  } else if (hx >= 0x7ff00000) {
    return x;
  } else if (x === 1) {
    return 0;
  }
  hx += 0x3ff00000 - 0x3fe6a09e;
  k += (hx >>> 20) - 0x3ff;
  x = ofWords((hx & 0xfffff) + 0x3fe6a09e, low(x));
  const f = x - 1;
  const hfsq = 0.5 * f * f;
  const s = f / (2 + f);
  const z = s * s;
  const w = z * z;
  const t1 = w * (3.999999999940941908e-1 + w * (2.222219843214978396e-1 + w * 1.531383769920937332e-1));
  const t2 =
    z * (6.666666666666735130e-1 + w * (2.857142874366239149e-1 + w * (1.818357216161805012e-1 + w * 1.479819860510658591e-1)));
  return s * (hfsq + (t2 + t1)) + k * LN2_LO - hfsq + f + k * LN2_HI;
}

/** The length of the vector `(x, y)`. */
export function hypot(x: number, y: number): number {
  [x, y] = [Math.abs(x), Math.abs(y)];
  if (x === Infinity || y === Infinity) return Infinity;
  if (x < y) [x, y] = [y, x];
  if (isNaN(x) || isNaN(y)) return NaN;
  if (y === 0) return x;
  const ex = high(x) >> 20;
  const ey = high(y) >> 20;
  if (ex - ey > 64) return x + y;
  // Squares that would be infinite or vanish are made of smaller or larger numbers.
  const by = ex > 0x3ff + 510 ? -700 : ey < 0x3ff - 450 ? 700 : 0;
  x *= twoTo(by);
  y *= twoTo(by);
  return twoTo(-by) * Math.sqrt(squareRest(y) + squareRest(x) + y * y + x * x);
}

/** What rounding leaves out of a square. */
function squareRest(x: number): number {
  const c = x * 134_217_729;
  const h = x - c + c;
  const l = x - h;
  return h * h - x * x + 2 * h * l + l * l;
}

const DP_H = 5.84962487220764160156e-1;
const DP_L = 1.35003920212974897128e-8;
const LG2 = 6.93147180559945286227e-1;
const LG2_H = 6.93147182464599609375e-1;
const LG2_L = -1.90465429995776804525e-9;
const OVERFLOW_REST = 8.0085662595372944372e-17;
const CP = 9.61796693925975554329e-1;
const CP_H = 9.61796700954437255859e-1;
const CP_L = -7.02846165095275826516e-9;
const INV_LN2_H = 1.44269502162933349609;
const INV_LN2_L = 1.92596299112661746887e-8;

/** `x` to the power of `y`. */
export function pow(x: number, y: number): number {
  const [hx, lx, hy, ly] = [high(x), low(x), high(y), low(y)];
  const ix = hx & 0x7fffffff;
  const iy = hy & 0x7fffffff;
  if (y === 0 || x === 1) return 1;
  if (isNaN(x) || isNaN(y)) return NaN;
  const parity = hx < 0 ? parityOf(iy, ly) : NOT_WHOLE;
  if (ly === 0) {
    if (iy === 0x7ff00000) {
      if (x === -1) return 1;
      return ix >= 0x3ff00000 === hy >= 0 ? Infinity : 0;
    }
    if (iy === 0x3ff00000) return hy >= 0 ? x : 1 / x;
    if (hy === 0x40000000) return x * x;
    if (hy === 0x3fe00000 && hx >= 0) return Math.sqrt(x);
  }
  const ax = Math.abs(x);
  if (lx === 0 && (ix === 0x7ff00000 || ix === 0 || ix === 0x3ff00000)) {
    const z = hy < 0 ? 1 / ax : ax;
    if (hx >= 0) return z;
    if (ix === 0x3ff00000 && parity === NOT_WHOLE) return NaN;
    return parity === ODD ? -z : z;
  }
  if (hx < 0 && parity === NOT_WHOLE) return NaN;
  const sign = parity === ODD ? -1 : 1;
  const beyond = (isLarge: boolean) => sign * (isLarge ? Infinity : 0);
  let logarithm: readonly [number, number];
  if (iy > 0x41e00000) {
    if (iy > 0x43f00000) return ix <= 0x3fefffff === hy < 0 ? Infinity : 0;
    if (ix < 0x3fefffff) return beyond(hy < 0);
    if (ix > 0x3ff00000) return beyond(hy > 0);
    logarithm = log2NearOne(ax);
  } else {
    logarithm = log2(ax, ix);
  }
  const [t1, t2] = logarithm;
  const y1 = highPart(y);
  const pl = (y - y1) * t1 + y * t2;
  const ph = y1 * t1;
  const z = pl + ph;
  const [hz, lz] = [high(z), low(z)];
  if (hz >= 0x40900000) {
    if (((hz - 0x40900000) | lz) !== 0 || pl + OVERFLOW_REST > z - ph) return beyond(true);
  } else if ((hz & 0x7fffffff) >= 0x4090cc00) {
    if (((hz - 0xc090cc00) | lz) !== 0 || pl <= z - ph) return beyond(false);
  }
  return sign * exp2(ph, pl, hz);
}

const [NOT_WHOLE, ODD, EVEN] = [0, 1, 2];

/** Whether the number of these words, without its sign, is whole, and odd or even. */
function parityOf(iy: number, ly: number): number {
  if (iy >= 0x43400000) return EVEN;
  if (iy < 0x3ff00000) return NOT_WHOLE;
  const k = (iy >> 20) - 0x3ff;
  if (k > 20) {
    const j = ly >>> (52 - k);
    return j << (52 - k) === ly ? EVEN - (j & 1) : NOT_WHOLE;
  }
  if (ly !== 0) return NOT_WHOLE;
  const j = iy >> (20 - k);
  return j << (20 - k) === iy ? EVEN - (j & 1) : NOT_WHOLE;
}

/** The logarithm to base 2 of a number within 2^-20 of 1, in two parts. */
function log2NearOne(ax: number): readonly [number, number] {
  const t = ax - 1;
  const w = t * t * (0.5 - t * (0.3333333333333333333333 - t * 0.25));
  const u = INV_LN2_H * t;
  const v = t * INV_LN2_L - w * INV_LN2;
  const t1 = highPart(u + v);
  return [t1, v - (t1 - u)];
}

/** The logarithm to base 2 in two parts. */
function log2(ax: number, ix: number): readonly [number, number] {
  let n = 0;
  if (ix < 0x00100000) {
    ax *= 9_007_199_254_740_992;
    n = -53;
    ix = high(ax);
  }
  n += (ix >> 20) - 0x3ff;
  const j = ix & 0x000fffff;
  ix = j | 0x3ff00000;
  const isUpper = j > 0x3988e && j < 0xbb67a;
  if (j >= 0xbb67a) {
    n += 1;
    ix -= 0x00100000;
  }
  ax = ofWords(ix, low(ax));
  const base = isUpper ? 1.5 : 1;
  const u = ax - base;
  const v = 1 / (ax + base);
  const ss = u * v;
  const sh = highPart(ss);
  let th = ofWords(((ix >> 1) | 0x20000000) + 0x00080000 + (isUpper ? 1 << 18 : 0), 0);
  let tl = ax - (th - base);
  const sl = v * (u - sh * th - sh * tl);
  const s2 = ss * ss;
  let r =
    s2 * s2 *
    (5.99999999999994648725e-1 + s2 * (4.28571428578550184252e-1 + s2 * (3.33333329818377432918e-1 + s2 * (2.72728123808534006489e-1 +
      s2 * (2.30660745775561754067e-1 + s2 * 2.06975017800338417784e-1)))));
  r += sl * (sh + ss);
  const sh2 = sh * sh;
  th = highPart(3 + sh2 + r);
  tl = r - (th - 3 - sh2);
  const a = sh * th;
  const b = sl * th + tl * ss;
  const ph = highPart(a + b);
  const pl = b - (ph - a);
  const zh = CP_H * ph;
  const zl = CP_L * ph + pl * CP + (isUpper ? DP_L : 0);
  const dp = isUpper ? DP_H : 0;
  const t1 = highPart(zh + zl + dp + n);
  return [t1, zl - (t1 - n - dp - zh)];
}

/** 2 to the power of `ph + pl`, whose sum has the high word `hz`. */
function exp2(ph: number, pl: number, hz: number): number {
  const i = hz & 0x7fffffff;
  let n = 0;
  if (i > 0x3fe00000) {
    n = hz + (0x00100000 >> ((i >> 20) - 0x3ff + 1));
    const k = ((n & 0x7fffffff) >> 20) - 0x3ff;
    ph -= ofWords(n & ~(0x000fffff >> k), 0);
    n = ((n & 0x000fffff) | 0x00100000) >> (20 - k);
    if (hz < 0) n = -n;
  }
  const t = highPart(pl + ph);
  const u = t * LG2_H;
  const v = (pl - (t - ph)) * LG2 + t * LG2_L;
  let z = u + v;
  const w = v - (z - u);
  const t1 = z - remainder(z * z);
  const r = (z * t1) / (t1 - 2) - (w + z * w);
  z = 1 - (r - z);
  const j = high(z) + (n << 20);
  return j >> 20 <= 0 ? scalbn(z, n) : ofWords(j, low(z));
}
