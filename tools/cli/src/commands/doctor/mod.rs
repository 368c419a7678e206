//! `parlor doctor`: looks at this machine as a server's, or at a server as its players reach it, and says what to do.

mod certificate;
mod findings;
mod machine;
mod server;
mod storage;

use crate::args::DoctorArgs;
use crate::commands::serve;
use crate::services;
use anyhow::{Context, bail};
use core::net::{IpAddr, Ipv4Addr};
use findings::Findings;
use parlor_transport::discovery::{DEFAULT_PORT, ServerAddress};
use server::Depth;

/// Runs the command.
///
/// # Errors
/// There are problems, or nothing could be looked at.
pub(crate) fn run(args: DoctorArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the thread for connections could not be started")?;
    let mut findings = Findings::new(args.json);
    let depth = if args.quick { Depth::Quick } else { Depth::Full };
    if let Some(address) = &args.server {
        let roots = args.ca.as_deref().map(services::roots).transpose()?;
        server::examine(&runtime, address, roots, depth, &mut findings);
    } else if args.quick {
        let settings = serve::resolved(args.serve)?;
        let Some(port) = Some(settings.port.unwrap_or(DEFAULT_PORT)).filter(|port| *port != 0) else {
            bail!("the server has any free port: name it with --server 127.0.0.1:PORT")
        };
        server::examine(&runtime, &own_address(settings.listen, port), None, depth, &mut findings);
    } else {
        machine::examine(&runtime, args.serve, &mut findings);
    }
    // A name that is still looked up must not hold up the end.
    runtime.shutdown_background();
    findings.end()
}

/// Where a server that listens like this is reached from its own machine.
fn own_address(listen: Option<IpAddr>, port: u16) -> ServerAddress {
    let host = listen.filter(|listen| !listen.is_unspecified()).unwrap_or(Ipv4Addr::LOCALHOST.into());
    ServerAddress { host: host.to_string(), port, fingerprint: None }
}
