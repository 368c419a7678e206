//! The step that compiles what a page loads to WebAssembly; [`web`](crate::web) checks it.
//!
//! With the target's standard library from rustup, it uses plain cargo. Otherwise it uses Debian's
//! `rustc-web`, `cargo-web` and `rust-web-src`: they bring the library's source, and `-Zbuild-std` compiles
//! it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::{Invocation, Level, Missing, Work, need};

/// The profile of the core in `web/dist`, which the server embeds.
pub(crate) const PAGE: &str = "page";

/// What the build leaves.
pub(crate) const FILE: &str = "target/wasm/wasm32-unknown-unknown/web/parlor_wasm.wasm";

const TARGET: &str = "wasm32-unknown-unknown";
const HINT: &str = "`rustup target add wasm32-unknown-unknown`, or on Debian \
    `apt-get install --no-install-recommends rustc-web cargo-web rust-web-src`";

const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_STD: &str = "/usr/lib/rustlib/src/rust/library/std";

/// A panic is a trap without a text, and the texts of panics are left out: the head of crates/wasm has what a page
/// is promised. Only a standard library that is compiled along can do so.
const RUSTFLAGS: &str = "-Zunstable-options -Zlocation-detail=none -Cpanic=immediate-abort";

/// Chooses the toolchain that compiles what a page loads.
pub(crate) fn plan(_: &Path, _: Level) -> Result<Work, Missing> {
    need("gzip --version", "gzip is not installed", "apt-get install gzip")?;
    Ok(Work::Web(compile("web")?))
}

/// Compiles the core with a profile.
pub(crate) fn compile(profile: &str) -> Result<Invocation, Missing> {
    let build = build(profile);
    if rustup_has_target() { Ok(Invocation::cargo(&build)) } else { debian_cargo(&build) }
}

fn debian_cargo(build: &str) -> Result<Invocation, Missing> {
    let absent = [DEBIAN_CARGO, DEBIAN_RUSTC, DEBIAN_STD].into_iter().find(|path| !Path::new(path).exists());
    if let Some(path) = absent {
        let why = format!("there is no standard library for {TARGET}: rustup has none, and no {path}");
        return Err(Missing { why, hint: HINT.to_owned() });
    }
    let cargo = Invocation::new(DEBIAN_CARGO)
        .args(build)
        .args("-Zbuild-std=std,panic_abort -Zbuild-std-features=optimize_for_size")
        .env("RUSTC", DEBIAN_RUSTC)
        .env("RUSTFLAGS", RUSTFLAGS)
        // `-Z` wants a nightly compiler or this.
        .env("RUSTC_BOOTSTRAP", "1");
    Ok(match linker() {
        Some(lld) => cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", &lld.to_string_lossy()),
        None => cargo,
    })
}

/// A target directory of its own: another compiler would throw out everything in the usual one.
fn build(profile: &str) -> String {
    format!("build --lib -p parlor-wasm --profile {profile} --target {TARGET} --target-dir target/wasm")
}

/// Whether rustup's standard library is linked, as it is.
pub(crate) fn rustup_has_target() -> bool {
    rustc_path(&["--print", "target-libdir", "--target", TARGET]).is_some_and(|libdir| libdir.exists())
}

/// Rustup's toolchain brings LLVM's linker, which Debian's packages do not.
fn linker() -> Option<PathBuf> {
    let sysroot = rustc_path(&["--print", "sysroot"])?;
    let lld = sysroot.join("lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld");
    lld.exists().then_some(lld)
}

fn rustc_path(args: &[&str]) -> Option<PathBuf> {
    let output = Command::new("rustc").args(args).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(path.trim()))
}
