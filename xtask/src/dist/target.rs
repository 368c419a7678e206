//! The machine that the binary is built for, and how.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};

use super::files;
use crate::cross;
use crate::invocation::Invocation;
use crate::plan::{Missing, need};
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
    /// The variables that tell the C compiler, the linker and its options.
    variables: [&'static str; 3],
}

/// All of them.
pub(super) const TARGETS: [Target; 2] = [
    Target {
        triple: "x86_64-unknown-linux-musl",
        debian: "amd64",
        node: "x64",
        variables: [
            "CC_x86_64_unknown_linux_musl",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_LINKER",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS",
        ],
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        debian: "arm64",
        node: "arm64",
        variables: [
            "CC_aarch64_unknown_linux_musl",
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER",
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUSTFLAGS",
        ],
    },
];

/// The target folder of these builds: another compiler would throw out everything in the usual one.
const FOLDER: &str = "target/dist-build";
/// GCC with the headers and the C library of musl, for this machine's own processor.
const COMPILER: &str = "musl-gcc";
/// Where Debian has LLVM's libraries.
const LLVM: &str = "/usr/lib";

/// How a binary is built.
#[derive(Debug)]
pub(super) struct Build {
    call: Invocation,
    /// The library that unwinds the stack, if the standard library is compiled along: rustup's has it.
    unwinder: Option<PathBuf>,
}

impl Target {
    /// That of this machine.
    pub(super) fn here() -> Result<Target, Missing> {
        let named = TARGETS.into_iter().find(|target| target.triple.starts_with(ARCH));
        named.filter(|_| cfg!(target_os = "linux")).ok_or_else(|| Missing {
            why: format!("there are no archives for this machine ({ARCH})"),
            hint: "run it on Linux, on x86-64 or ARM of 64 bits".to_owned(),
        })
    }

    /// Plans the build of the binary.
    pub(super) fn plan(self, root: &Path) -> Result<Build, Missing> {
        let [compiler, linker, flags] = self.variables;
        need(
            &format!("{COMPILER} --version"),
            "there is no compiler for musl",
            "apt-get install musl-tools",
        )?;
        let cargo = cross::cargo(self.triple)?;
        let build = "rustc --release --locked -p parlor-cli --target-dir";
        let mut call = cargo.invocation.args(build).args(FOLDER).args("--target").args(self.triple);
        call = call.env(compiler, COMPILER);
        let mut unwinder = None;
        if cargo.builds_std {
            // `self-contained` is what rustup brings: here musl is the system's.
            let libraries = root.join(FOLDER).join("lib");
            let own =
                format!("-Clink-self-contained=no -Ctarget-feature=+crt-static -L{}", libraries.display());
            call = call.args("-Zbuild-std=std,panic_unwind").env(linker, COMPILER).env(flags, &own);
            // musl-gcc links static programs, and ones that are loaded anywhere, but none that are both.
            call = call.args("-- -Crelocation-model=static");
            unwinder = Some(llvm_unwinder().ok_or_else(|| Missing {
                why: "there is no libunwind of LLVM, which unwinds the stack with musl".to_owned(),
                hint: "`apt-get install libunwind-14-dev`".to_owned(),
            })?);
        }
        Ok(Build { call, unwinder })
    }

    /// Builds the binary; returns where it is.
    pub(super) fn build(self, root: &Path, Build { call, unwinder }: &Build) -> Result<PathBuf, Failure> {
        if let Some(unwinder) = unwinder {
            files::write(&root.join(FOLDER).join("lib/libunwind.a"), script(unwinder).as_bytes())?;
        }
        spawn(root, call)?;
        Ok(root.join(FOLDER).join(self.triple).join("release/parlor"))
    }
}

/// What the linker finds as the library that unwinds the stack. GCC's library has what C code calls that GCC compiled.
/// Debian's LLVM prints by a function of glibc before it aborts, which musl lacks.
fn script(unwinder: &Path) -> String {
    format!("INPUT({} -lgcc)\nPROVIDE(__fprintf_chk = abort);\n", unwinder.display())
}

/// The newest one of Debian's packages `libunwind-*-dev`.
fn llvm_unwinder() -> Option<PathBuf> {
    let folders = fs::read_dir(LLVM).ok()?.flatten().map(|entry| entry.path());
    let is_llvm =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("llvm-"));
    folders.filter(is_llvm).map(|folder| folder.join("lib/libunwind.a")).filter(|path| path.exists()).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_has_the_names_of_rust_debian_and_node() {
        for target in TARGETS {
            let variable = target.triple.to_uppercase().replace('-', "_");
            assert!(
                target.variables[1].contains(&variable) && target.variables[2].contains(&variable),
                "{target:?}"
            );
            assert!(target.variables[0].ends_with(&target.triple.replace('-', "_")), "{target:?}");
        }
    }
}
