//! The binary `parlor` on real networks: each scenario builds network namespaces with homes behind nftables' masquerade, a
//! public server and machines on a local network, runs members in them, disturbs the network, and holds what the members
//! say and what went over the wires against what must be.
//!
//! `parlor-nat [SCENARIO]...` runs the scenarios named, otherwise all, at the same time, with the binary `parlor` that stands
//! beside it; it needs root, `ip`, `nft` and `conntrack`. Nothing depends on how fast the machine is: states are waited for, and times without updates are held against
//! those of members that were not disturbed.

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
