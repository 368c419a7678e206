// The bits of a number, as two words of 32.

const number = new Float64Array(1);
const words = new Int32Array(number.buffer);
/** Where the high word is: 1 on all machines that browsers run on, and 0 on those of the other order of bytes. */
const HIGH = (() => {
  number[0] = 1;
  return words[1] === 0 ? 0 : 1;
})();

/** The high word: sign, exponent and 20 bits of the fraction. */
export function high(x: number): number {
  number[0] = x;
  return words[HIGH]!;
}

/** The low word. */
export function low(x: number): number {
  number[0] = x;
  return words[1 - HIGH]!;
}

/** A number of its words. */
export function ofWords(hi: number, lo: number): number {
  words[HIGH] = hi;
  words[1 - HIGH] = lo;
  return number[0]!;
}

/** The number with its low word zero. */
export function highPart(x: number): number {
  number[0] = x;
  words[1 - HIGH] = 0;
  return number[0]!;
}

/** 2^n, for n from -1022 to 1023. `**` is not the same in all engines. */
export function twoTo(n: number): number {
  return ofWords((0x3ff + n) << 20, 0);
}

/** x · 2^n, rounded once. */
export function scalbn(x: number, n: number): number {
  for (let i = 0; i < 2 && n > 1023; i++, n -= 1023) x *= twoTo(1023);
  // 53 bits less than the smallest exponent: what follows must not round a second time.
  for (let i = 0; i < 2 && n < -1022; i++, n += 969) x *= twoTo(-969);
  return x * twoTo(Math.max(-1022, Math.min(n, 1023)));
}
