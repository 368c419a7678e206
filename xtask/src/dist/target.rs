//! The machines that the binary is built for, and how.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cross;
use crate::invocation::Invocation;
use crate::plan::{Missing, need};
use crate::process::{Failure, spawn};

/// A machine that the binary is built for. All are Linux with musl, so that the binary is static: it needs no library of
/// the system that it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Rust's name.
    pub(crate) triple: &'static str,
    /// Debian's name.
    pub(crate) debian: &'static str,
    /// Node's `process.arch`.
    pub(crate) node: &'static str,
    /// The C compiler, for SQLite and ring.
    compiler: &'static str,
    /// The Debian package that has it.
    package: &'static str,
    /// The variables that tell cargo, cc and the linker.
    variables: [&'static str; 3],
}

/// All of them.
pub(crate) const TARGETS: [Target; 2] = [
    Target {
        triple: "x86_64-unknown-linux-musl",
        debian: "amd64",
        node: "x64",
        compiler: "musl-gcc",
        package: "musl-tools",
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
        compiler: "aarch64-linux-musl-gcc",
        package: "musl-tools",
        variables: [
            "CC_aarch64_unknown_linux_musl",
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER",
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUSTFLAGS",
        ],
    },
];

/// The target folder of these builds: another compiler would throw out everything in the usual one.
const FOLDER: &str = "target/dist-build";

impl Target {
    /// The one with this name: Rust's, Debian's or Node's.
    pub(crate) fn named(name: &str) -> Option<Target> {
        TARGETS.into_iter().find(|target| [target.triple, target.debian, target.node].contains(&name))
    }

    /// How the binary is built.
    pub(crate) fn plan(self, root: &Path) -> Result<Invocation, Missing> {
        let [compiler, linker, flags] = self.variables;
        need(
            &format!("{} --version", self.compiler),
            &format!("there is no C compiler for {}", self.triple),
            &format!("apt-get install {}", self.package),
        )?;
        let cargo = cross::cargo(self.triple)?;
        let build = "build --release --locked -p parlor-cli --target-dir";
        let mut build = cargo
            .invocation
            .args(build)
            .args(FOLDER)
            .args("--target")
            .args(self.triple)
            .env(compiler, self.compiler);
        if cargo.builds_std {
            // The library of the compiler's own, which rustup's would bring, is musl's of the system.
            let libraries = root.join(FOLDER).join("lib");
            let own =
                format!("-Clink-self-contained=no -Ctarget-feature=+crt-static -L{}", libraries.display());
            build = build.args("-Zbuild-std=std,panic_unwind").env(linker, self.compiler).env(flags, &own);
        }
        Ok(build)
    }

    /// Builds the binary; returns where it is.
    pub(crate) fn build(self, root: &Path, plan: &Invocation) -> Result<PathBuf, Failure> {
        // The standard library asks for the library of LLVM that unwinds the stack. Those of GCC do the same, and have what
        // C code calls that GCC compiled.
        let libraries = root.join(FOLDER).join("lib");
        let script = fs::create_dir_all(&libraries)
            .and_then(|()| fs::write(libraries.join("libunwind.a"), "INPUT(-lgcc_eh -lgcc)\n"));
        script.map_err(|error| Failure::of(format!("{}: {error}", libraries.display())))?;
        spawn(root, plan)?;
        Ok(root.join(FOLDER).join(self.triple).join("release/parlor"))
    }
}
