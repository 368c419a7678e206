//! Runs the binary `parlor` on real networks. Each scenario builds network namespaces: homes behind nftables'
//! masquerade, a public server, and machines on a local network. It runs members in them, disturbs the
//! network, and checks the members' events and the traffic.
//!
//! `parlor-nat [SCENARIO]...` runs the named scenarios, or all, concurrently. It uses the binary `parlor`
//! beside it, and needs root, `ip`, `nft` and `conntrack`. No check depends on the machine's speed: the
//! scenarios wait for states, and compare times without updates with those of undisturbed members.

#![allow(clippy::print_stdout, reason = "it reports to a person at a terminal")]

#[cfg(target_os = "linux")]
mod counts;
#[cfg(target_os = "linux")]
mod fault;
#[cfg(target_os = "linux")]
mod log;
#[cfg(target_os = "linux")]
mod member;
#[cfg(target_os = "linux")]
mod net;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod scenario;
#[cfg(target_os = "linux")]
mod space;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    match beside().and_then(|binary| scenario::run(&binary, &names)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(fault) => {
            println!("{fault}");
            ExitCode::from(2)
        }
    }
}

/// The binary that was built with this one.
#[cfg(target_os = "linux")]
fn beside() -> fault::Outcome<std::path::PathBuf> {
    let this = std::env::current_exe().map_err(fault::Fault::during("where this program stands"))?;
    Ok(this.with_file_name("parlor"))
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    println!("network namespaces are Linux's");
    ExitCode::from(2)
}
