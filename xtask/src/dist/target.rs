//! The machine that the binary is built for, and how.

use std::env::consts::ARCH;
use std::path::{Path, PathBuf};

use crate::cross;
use crate::invocation::Invocation;
use crate::plan::{Missing, need, need_environments};
use crate::process::{Failure, spawn};

/// A machine that the binary is built for. All are Linux with musl, so that the binary is static: it needs no library of
/// the system that it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Rust's name.
    pub(super) triple: &'static str,
    /// Debian's name.
    pub(super) debian: &'static str,
    /// Node's `process.arch`.
    pub(super) node: &'static str,
    /// The variable with the compiler's options.
    flags: &'static str,
}

/// All of them.
pub(super) const TARGETS: [Target; 2] = [
    Target {
        triple: "x86_64-unknown-linux-musl",
        debian: "amd64",
        node: "x64",
        flags: "CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS",
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        debian: "arm64",
        node: "arm64",
        flags: "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUSTFLAGS",
    },
];

/// The target folder of these builds: another compiler would throw out everything in the usual one.
const FOLDER: &str = "target/dist-build";
/// Zig, which compiles what is C, and links.
const ZIG: &str = "target/zig";

impl Target {
    /// The one with this name of Rust's, or with its first part: `aarch64`.
    pub(super) fn named(name: &str) -> Result<Target, Failure> {
        let is_named = |target: &Target| {
            target.triple == name || target.triple.split('-').next().is_some_and(|machine| machine == name)
        };
        TARGETS.into_iter().find(is_named).ok_or_else(|| {
            let known = TARGETS.map(|target| target.triple).join(", ");
            Failure::of(format!("there are no archives for `{name}`: there are those for {known}"))
        })
    }

    /// That of this machine.
    pub(super) fn here() -> Result<Target, Missing> {
        let named = Target::named(ARCH).ok();
        named.filter(|_| cfg!(target_os = "linux")).ok_or_else(|| Missing {
            why: format!("there are no archives for this machine ({ARCH})"),
            hint: "run it on Linux, on x86-64 or ARM of 64 bits".to_owned(),
        })
    }

    /// A call of a program that was built for it.
    pub(super) fn call(self, program: &Path) -> Invocation {
        let program = program.to_string_lossy();
        match self.emulator() {
            None => Invocation::new(&program),
            Some(emulator) => Invocation::new(&emulator).args(&program),
        }
    }

    /// What runs its programs here; `None` if this machine does.
    fn emulator(self) -> Option<String> {
        let (machine, _) = self.triple.split_once('-')?;
        (machine != ARCH).then(|| format!("qemu-{machine}-static"))
    }

    /// Plans the build of the binary.
    pub(super) fn plan(self, root: &Path) -> Result<Invocation, Missing> {
        need_environments()?;
        if let Some(emulator) = self.emulator() {
            // The program writes its own manual.
            let why = format!("{emulator} is not installed, which runs programs for {}", self.triple);
            need(&format!("{emulator} --version"), &why, "apt-get install qemu-user-static")?;
        }
        let toolchain = cross::toolchain(self.triple)?;
        let within = |folder: &str, name: &str| root.join(folder).join(name).to_string_lossy().into_owned();
        let mut call = toolchain
            .call_through(&format!("{ZIG}/bin/cargo-zigbuild"))
            .args("rustc --release --locked -p parlor-cli --target-dir")
            .args(FOLDER)
            .args("--target")
            .args(self.triple)
            .env("CARGO_ZIGBUILD_PYTHON_PATH", &within(ZIG, "bin/python"))
            // In place of folders in the user's home. Programs that run in other folders get them, so they are whole paths.
            .env("CARGO_ZIGBUILD_CACHE_DIR", &within(FOLDER, "zigbuild"))
            .env("ZIG_GLOBAL_CACHE_DIR", &within(FOLDER, "zig"));
        if toolchain.builds_std {
            // `self-contained` is what rustup brings: here musl and the unwinder are Zig's.
            call = call.args("-Zbuild-std=std,panic_unwind").env(self.flags, "-Clink-self-contained=no");
        }
        Ok(call)
    }

    /// Builds the binary; returns where it is.
    pub(super) fn build(self, root: &Path, call: &Invocation) -> Result<PathBuf, Failure> {
        spawn(root, &Invocation::new("sh").args("xtask/pinned.sh xtask/zig/requirements.txt").args(ZIG))?;
        spawn(root, call)?;
        Ok(root.join(FOLDER).join(self.triple).join("release/parlor"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_has_the_names_of_rust_debian_and_node() {
        for target in TARGETS {
            let variable = target.triple.to_uppercase().replace('-', "_");
            assert!(target.flags.contains(&variable), "{target:?}");
            assert_eq!(Target::named(target.triple).ok(), Some(target));
        }
        assert_eq!(Target::named("aarch64").map(|target| target.node).ok(), Some("arm64"));
        assert!(
            Target::named("sparc").is_err_and(|failure| failure.why.contains("x86_64-unknown-linux-musl"))
        );
    }
}
