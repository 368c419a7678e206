//! Builds for targets that are not this machine's own.
//!
//! With the target's standard library from rustup, it is plain cargo. Otherwise it is Debian's `rustc-web`, `cargo-web` and
//! `rust-web-src`: they bring the library's source, and `-Zbuild-std` compiles it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::invocation::Invocation;
use crate::plan::Missing;

const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_STD: &str = "/usr/lib/rustlib/src/rust/library/std";

/// Cargo for a target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Toolchain {
    cargo: &'static str,
    /// Whether the standard library must be compiled along.
    pub(crate) builds_std: bool,
}

impl Toolchain {
    /// Cargo, without arguments.
    pub(crate) fn call(self) -> Invocation {
        self.told(Invocation::new(self.cargo))
    }

    /// A program that calls cargo.
    pub(crate) fn call_through(self, program: &str) -> Invocation {
        self.told(Invocation::new(program).env("CARGO", self.cargo))
    }

    fn told(self, call: Invocation) -> Invocation {
        if !self.builds_std {
            return call;
        }
        // `-Z` wants a nightly compiler or this.
        call.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1")
    }
}

/// Chooses the toolchain that compiles for `target`.
pub(crate) fn toolchain(target: &str) -> Result<Toolchain, Missing> {
    if rustup_has(target) {
        return Ok(Toolchain { cargo: "cargo", builds_std: false });
    }
    let absent = [DEBIAN_CARGO, DEBIAN_RUSTC, DEBIAN_STD].into_iter().find(|path| !Path::new(path).exists());
    if let Some(path) = absent {
        return Err(Missing {
            why: format!("there is no standard library for {target}: rustup has none, and no {path}"),
            hint: format!(
                "`rustup target add {target}`, or on Debian \
                 `apt-get install --no-install-recommends rustc-web cargo-web rust-web-src`"
            ),
        });
    }
    Ok(Toolchain { cargo: DEBIAN_CARGO, builds_std: true })
}

/// Whether rustup's standard library for `target` is there.
pub(crate) fn rustup_has(target: &str) -> bool {
    rustc_path(&["--print", "target-libdir", "--target", target]).is_some_and(|libdir| libdir.exists())
}

/// LLVM's linker, which rustup's toolchain brings and Debian's packages do not.
pub(crate) fn rust_lld() -> Option<PathBuf> {
    let sysroot = rustc_path(&["--print", "sysroot"])?;
    let lld = sysroot.join("lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld");
    lld.exists().then_some(lld)
}

fn rustc_path(args: &[&str]) -> Option<PathBuf> {
    let output = Command::new("rustc").args(args).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(path.trim()))
}
