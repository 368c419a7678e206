//! The step that compiles what a page loads to WebAssembly; [`web`](crate::web) checks it.

use std::path::Path;

use crate::cross;
use crate::invocation::Invocation;
use crate::plan::{Level, Missing, Work, need};

/// What the build leaves.
pub(crate) const FILE: &str = "target/wasm/wasm32-unknown-unknown/web/parlor_wasm.wasm";

const TARGET: &str = "wasm32-unknown-unknown";
/// All but the target. Its directory is its own: another compiler would throw out everything in the usual
/// one. The crate is also a library for its tests: linked as one as well, it would keep functions that no
/// page calls, an eighth of it.
const BUILD: &str =
    "rustc --lib --crate-type cdylib -p parlor-wasm --profile web --target-dir target/wasm --target";
/// A panic is a trap without a text, and the texts of panics are left out: the head of crates/wasm has what a
/// page is promised. So is the code of `Debug`; tidy sees to it that no text which a page can read needs it.
/// Only a standard library that is compiled along can do so.
const RUSTFLAGS: &str = "-Zunstable-options -Zlocation-detail=none -Zfmt-debug=none -Cpanic=immediate-abort";

/// Chooses the toolchain that compiles what a page loads.
pub(crate) fn plan(_: &Path, _: Level) -> Result<Work, Missing> {
    build().map(Work::Web)
}

/// The call that compiles it.
pub(crate) fn build() -> Result<Invocation, Missing> {
    need("gzip --version", "gzip is not installed", "apt-get install gzip")?;
    let toolchain = cross::toolchain(TARGET)?;
    let mut build = toolchain.call().args(BUILD).args(TARGET);
    if toolchain.builds_std {
        build = build
            .args("-Zbuild-std=std,panic_abort -Zbuild-std-features=optimize_for_size")
            .env("RUSTFLAGS", RUSTFLAGS);
        if let Some(lld) = cross::rust_lld() {
            build = build.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", &lld.to_string_lossy());
        }
    }
    Ok(build)
}

/// Whether rustup's standard library is linked, as it is.
pub(crate) fn rustup_has_target() -> bool {
    cross::rustup_has(TARGET)
}
