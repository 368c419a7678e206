//! Hands on how much this build is optimized: a test that fails prints a command that builds the same.

#![allow(clippy::print_stdout, reason = "that is how a build script speaks to cargo")]

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let level = std::env::var("OPT_LEVEL").expect("cargo tells every build script");
    println!("cargo:rustc-env=OPT_LEVEL={level}");
}
