//! How the shared library is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        // Threads of the library run until the process ends, so an engine that closes it must not take their code away.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
        // Otherwise a program that is linked with the library's path looks for it there alone.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libparlor_capi.so");
    }
}
