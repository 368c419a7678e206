//! `parlor/math` of the SDK gives the bits of the crate `libm`: both compute the hashes of testdata/math.txt.
//!
//! Arguments are the special values of that file, each with each for functions of two, and then numbers from a
//! generator. Each result is hashed with all before it. sdk/ts/test/unit/math.test.ts does the same.

use std::fmt::Write as _;

/// Results of each function.
const COUNT: u32 = 120_000;
const VECTORS: &str = include_str!("../../../testdata/math.txt");

/// The special arguments of the file.
fn special() -> Vec<f64> {
    let lines = VECTORS.lines().filter_map(|line| line.strip_prefix("special "));
    let bits = lines.filter_map(|line| u64::from_str_radix(line.get(..16)?, 16).ok());
    bits.map(f64::from_bits).collect()
}

struct Random(u32);

impl Random {
    /// The next 32 bits.
    fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9);
        let mut t = self.0 ^ (self.0 >> 16);
        t = t.wrapping_mul(0x21f0_aaad);
        t ^= t >> 15;
        t = t.wrapping_mul(0x735a_2d97);
        t ^ (t >> 15)
    }

    /// An argument: any bits, within ±8, within ±1, or of many sizes.
    fn argument(&mut self) -> f64 {
        let (kind, high, low) = (self.word(), self.word(), self.word());
        let within = (f64::from(high) * 2_097_152.0 + f64::from(low >> 11)) / 9_007_199_254_740_992.0 - 0.5;
        match kind % 4 {
            0 => f64::from_bits(u64::from(high) << 32 | u64::from(low)),
            1 => within * 16.0,
            2 => within * 2.0,
            _ => within * f64::from_bits(u64::from(0x3ff - 24 + (kind >> 2) % 64) << 52),
        }
    }
}

#[derive(Default)]
struct Hash(u32, u32);

impl Hash {
    fn add(&mut self, result: f64) {
        let bits = if result.is_nan() { 0x7ff8_0000_0000_0000 } else { result.to_bits() };
        let half = |bits: u64| u32::try_from(bits & 0xffff_ffff).expect("it has 32 bits");
        let (high, low) = (half(bits >> 32), half(bits));
        self.0 = (self.0 ^ high).wrapping_mul(0x85eb_ca6b).rotate_left(13);
        self.1 = (self.1 ^ low).wrapping_add(self.0).wrapping_mul(0xc2b2_ae35).rotate_left(15);
    }
}

/// A function of one number, with its name.
type One = (&'static str, fn(f64) -> f64);
/// A function of two.
type Two = (&'static str, fn(f64, f64) -> f64);

fn of_one(function: fn(f64) -> f64) -> Hash {
    let (mut hash, mut random) = (Hash::default(), Random(1));
    special().into_iter().for_each(|x| hash.add(function(x)));
    (0..COUNT).for_each(|_| hash.add(function(random.argument())));
    hash
}

fn of_two(function: fn(f64, f64) -> f64) -> Hash {
    let (mut hash, mut random) = (Hash::default(), Random(2));
    let special = special();
    for a in &special {
        special.iter().for_each(|b| hash.add(function(*a, *b)));
    }
    for _ in 0..COUNT {
        let (a, b) = (random.argument(), random.argument());
        hash.add(function(a, b));
    }
    hash
}

#[test]
fn the_sdk_has_the_bits_of_libm() {
    let mut text = String::new();
    let ones: [One; 9] = [
        ("acos", libm::acos),
        ("asin", libm::asin),
        ("atan", libm::atan),
        ("cos", libm::cos),
        ("exp", libm::exp),
        ("log", libm::log),
        ("sin", libm::sin),
        ("sqrt", libm::sqrt),
        ("tan", libm::tan),
    ];
    let twos: [Two; 3] = [("atan2", libm::atan2), ("hypot", libm::hypot), ("pow", libm::pow)];
    let hashes = ones.into_iter().map(|(name, function)| (name, of_one(function)));
    for (name, Hash(high, low)) in
        hashes.chain(twos.into_iter().map(|(name, function)| (name, of_two(function))))
    {
        writeln!(text, "{name} {high:08x}{low:08x}").expect("text grows");
    }
    assert_eq!(special().len(), 36);
    let vectors = VECTORS.lines().filter(|line| !line.starts_with('#') && !line.starts_with("special"));
    assert_eq!(
        text.trim_end(),
        vectors.collect::<Vec<_>>().join("\n"),
        "testdata/math.txt has other hashes than this libm"
    );
}
