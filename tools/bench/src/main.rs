//! The binary `parlor-bench`. See the library of the same name.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    parlor_bench::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "parlor-bench: it reads /proc, and so runs on Linux alone");
    std::process::ExitCode::FAILURE
}
