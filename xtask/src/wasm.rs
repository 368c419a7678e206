//! The step that compiles what a page loads to WebAssembly; [`web`](crate::web) checks it.
//!
//! With the target's standard library from rustup, it uses plain cargo. Otherwise it uses Debian's
//! `rustc-web`, `cargo-web` and `rust-web-src`: they bring the library's source, and `-Zbuild-std` compiles
//! it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::invocation::Invocation;
use crate::steps::{Level, Missing, Work, need};

/// What the build leaves.
pub(crate) const FILE: &str = "target/wasm/wasm32-unknown-unknown/web/parlor_wasm.wasm";

const TARGET: &str = "wasm32-unknown-unknown";
/// All but the target. Its directory is its own: another compiler would throw out everything in the usual
/// one. The crate is also a library for its tests: linked as one as well, it would keep functions that no
/// page calls, an eighth of it.
const BUILD: &str =
    "rustc --lib --crate-type cdylib -p parlor-wasm --profile web --target-dir target/wasm --target";
const HINT: &str = "`rustup target add wasm32-unknown-unknown`, or on Debian \
    `apt-get install --no-install-recommends rustc-web cargo-web rust-web-src`";

const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_STD: &str = "/usr/lib/rustlib/src/rust/library/std";

/// A panic is a trap without a text, and the texts of panics are left out: the head of crates/wasm has what a
/// page is promised. So is the code of `Debug`; tidy sees to it that no text which a page can read needs it.
/// Only a standard library that is compiled along can do so.
const RUSTFLAGS: &str = "-Zunstable-options -Zlocation-detail=none -Zfmt-debug=none -Cpanic=immediate-abort";

/// Chooses the toolchain that compiles what a page loads.
pub(crate) fn plan(_: &Path, _: Level) -> Result<Work, Missing> {
    need("gzip --version", "gzip is not installed", "apt-get install gzip")?;
    let build = if rustup_has_target() { Invocation::cargo(BUILD).args(TARGET) } else { debian_cargo()? };
    Ok(Work::Web(build))
}

fn debian_cargo() -> Result<Invocation, Missing> {
    let absent = [DEBIAN_CARGO, DEBIAN_RUSTC, DEBIAN_STD].into_iter().find(|path| !Path::new(path).exists());
    if let Some(path) = absent {
        let why = format!("there is no standard library for {TARGET}: rustup has none, and no {path}");
        return Err(Missing { why, hint: HINT.to_owned() });
    }
    let cargo = Invocation::new(DEBIAN_CARGO)
        .args(BUILD)
        .args(TARGET)
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
