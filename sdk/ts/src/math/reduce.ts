// Remainders of a division by π/2, for arguments of any size.
//
// After the crate `libm` 0.2.16 (MIT), which is after musl and FreeBSD's msun:
// Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved. Developed at SunSoft, a Sun Microsystems, Inc. business.
// Permission to use, copy, modify, and distribute this software is freely granted, provided that this notice is preserved.

import { high, low, ofWords, scalbn, twoTo } from "./bits.js";

const TO_INT = 1.5 / 2.2204460492503131e-16;
const INV_PIO2 = 6.36619772367581382433e-1;
const PIO2_1 = 1.57079632673412561417;
const PIO2_1T = 6.07710050650619224932e-11;
const PIO2_2 = 6.0771005063039659766e-11;
const PIO2_2T = 2.02226624879595063154e-21;
const PIO2_3 = 2.0222662487111664558e-21;
const PIO2_3T = 8.47842766036889956997e-32;

/** 2/π in pieces of 24 bits. */
const IPIO2 =
  "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E006492EEA09D1921CFE1DEB1CB129A73EE88235F52EBB44" +
  "84E99C7026B45F7E413991D639835339F49C845F8BBDF9283B1FF897FFDE05980FEF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5" +
  "F17B3D0739F78A5292EA6BFB5FB11F8D5D0856033046FC7B6BABF0CFBC209AF4361DA9E391615EE61B086599855F14A068408DFFD8804D73273106061556CA" +
  "73A8C960E27BC08C6B";
const ipio2 = (i: number) => Number.parseInt(IPIO2.slice(6 * i, 6 * i + 6), 16);

const PIO2 = [
  1.57079625129699707031, 7.54978941586159635335e-8, 5.39030252995776476554e-15, 3.28200341580791294123e-22, 1.27065575308067607349e-29,
];
const TERMS = 4;
const TWO_TO_24 = 16_777_216;
const TWO_TO_MINUS_24 = 5.960464477539063e-8;

/** The remainder of the last reduction: its number, and what that leaves out. */
export let y0 = 0;
export let y1 = 0;

/** Reduces `x` by multiples of π/2. Returns how many, modulo 8; `y0` and `y1` have the rest. */
export function reduce(x: number): number {
  const hx = high(x);
  const ix = hx & 0x7fffffff;
  if (ix < 0x413921fb) {
    // Near 5π/4 and 9π/4 and below, a single round is enough, unless nearly all digits cancel.
    const k = ix > 0x401c463b || cancels(ix) ? 0 : ix <= 0x4002d97c ? 1 : ix <= 0x400f6a7a ? 2 : ix <= 0x4015fdbc ? 3 : 4;
    return k === 0 ? medium(x, ix) : few(x, hx < 0 ? -k : k);
  }
  let z = ofWords((hx & 0xfffff) | ((0x3ff + 23) << 20), low(x));
  const parts = [0, 0, 0];
  for (let i = 0; i < 2; i++) {
    parts[i] = z | 0;
    z = (z - parts[i]!) * TWO_TO_24;
  }
  parts[2] = z;
  while (parts.length > 1 && parts[parts.length - 1] === 0) parts.pop();
  const n = large(parts, (ix >> 20) - (0x3ff + 23));
  if (hx >= 0) return n;
  y0 = -y0;
  y1 = -y1;
  return -n;
}

/** Whether an argument is nearly a multiple of π/2. */
function cancels(ix: number): boolean {
  return ix <= 0x400f6a7a ? (ix & 0xfffff) === 0x921fb : ix === 0x4012d97c || ix === 0x401921fb;
}

function few(x: number, k: number): number {
  const z = x - k * PIO2_1;
  const t = k * PIO2_1T;
  y0 = z - t;
  y1 = z - y0 - t;
  return k;
}

function medium(x: number, ix: number): number {
  const k = x * INV_PIO2 + TO_INT - TO_INT;
  let r = x - k * PIO2_1;
  let w = k * PIO2_1T;
  y0 = r - w;
  const exponent = ix >> 20;
  if (exponent - ((high(y0) >> 20) & 0x7ff) > 16) {
    let t = r;
    w = k * PIO2_2;
    r = t - w;
    w = k * PIO2_2T - (t - r - w);
    y0 = r - w;
    if (exponent - ((high(y0) >> 20) & 0x7ff) > 49) {
      t = r;
      w = k * PIO2_3;
      r = t - w;
      w = k * PIO2_3T - (t - r - w);
      y0 = r - w;
    }
  }
  y1 = r - y0 - w;
  return k | 0;
}

/** Payne and Hanek's reduction: `parts` are 24 bits each of a number whose exponent is `e0`. */
function large(parts: readonly number[], e0: number): number {
  const last = parts.length - 1;
  const jv = Math.max(0, Math.trunc((e0 - 3) / 24));
  let q0 = e0 - 24 * (jv + 1);
  const f = Array.from({ length: last + TERMS + 1 }, (_, i) => (jv - last + i < 0 ? 0 : ipio2(jv - last + i)));
  const product = (i: number) => parts.reduce((sum, part, j) => sum + part * f[last + i - j]!, 0);
  const q = Array.from({ length: TERMS + 1 }, (_, i) => product(i));
  const iq: number[] = [];
  let jz = TERMS;
  let n: number;
  let ih: number;
  let z: number;
  for (;;) {
    z = q[jz]!;
    for (let i = 0, j = jz; j > 0; i++, j--) {
      const fw = (TWO_TO_MINUS_24 * z) | 0;
      iq[i] = (z - TWO_TO_24 * fw) | 0;
      z = q[j - 1]! + fw;
    }
    z = scalbn(z, q0);
    z -= 8 * Math.floor(z * 0.125);
    n = z | 0;
    z -= n;
    ih = 0;
    if (q0 > 0) {
      const i = iq[jz - 1]! >> (24 - q0);
      n += i;
      iq[jz - 1]! -= i << (24 - q0);
      ih = iq[jz - 1]! >> (23 - q0);
    } else if (q0 === 0) {
      ih = iq[jz - 1]! >> 23;
    } else if (z >= 0.5) {
      ih = 2;
    }
    if (ih > 0) {
      n += 1;
      let carry = 0;
      for (let i = 0; i < jz; i++) {
        const j = iq[i]!;
        if (carry !== 0) iq[i] = 0xffffff - j;
        else if (j !== 0) [carry, iq[i]] = [1, 0x1000000 - j];
      }
      if (q0 > 0) iq[jz - 1]! &= 0x7fffff >> (q0 - 1);
      if (ih === 2) {
        z = 1 - z;
        if (carry !== 0) z -= twoTo(q0);
      }
    }
    if (z !== 0 || iq.slice(TERMS, jz).some((bits) => bits !== 0)) break;
    // All known digits cancel: more of 2/π is needed.
    let k = 1;
    while (iq[TERMS - k] === 0) k += 1;
    for (let i = jz + 1; i <= jz + k; i++) {
      f[last + i] = ipio2(jv + i);
      q[i] = product(i);
    }
    jz += k;
  }
  if (z === 0) {
    do {
      jz -= 1;
      q0 -= 24;
    } while (iq[jz] === 0);
  } else {
    z = scalbn(z, -q0);
    if (z >= TWO_TO_24) {
      const fw = (TWO_TO_MINUS_24 * z) | 0;
      iq[jz] = (z - TWO_TO_24 * fw) | 0;
      jz += 1;
      q0 += 24;
      iq[jz] = fw;
    } else {
      iq[jz] = z | 0;
    }
  }
  let fw = twoTo(q0);
  for (let i = jz; i >= 0; i--) {
    q[i] = fw * iq[i]!;
    fw *= TWO_TO_MINUS_24;
  }
  const fq: number[] = [];
  for (let i = jz; i >= 0; i--) {
    let sum = 0;
    for (let k = 0; k <= TERMS && k <= jz - i; k++) sum += PIO2[k]! * q[i + k]!;
    fq[jz - i] = sum;
  }
  fw = 0;
  for (let i = jz; i >= 0; i--) fw += fq[i]!;
  y0 = ih === 0 ? fw : -fw;
  fw = fq[0]! - fw;
  for (let i = 1; i <= jz; i++) fw += fq[i]!;
  y1 = ih === 0 ? fw : -fw;
  return n & 7;
}
