//! `parlor impair`: a bad network for any program that speaks UDP.

use crate::args::ImpairArgs;
use anyhow::{Context, bail};
use parlor_terminal::print::{print_json, say};
use parlor_transport::connect::resolve;
use parlor_transport::impaired::{Conditions, Counts, Proxy, ProxyCounts};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::{interval, sleep};

/// Time between two lines that say how it goes.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// Runs the command until Ctrl-C.
///
/// # Errors
/// What was wrong with the arguments, or kept the proxy from going on.
pub(crate) fn run(args: &ImpairArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the thread of the proxy could not be prepared")?;
    runtime.block_on(proxy(args))
}

async fn proxy(args: &ImpairArgs) -> anyhow::Result<()> {
    let to = server(&args.to, args.listen).await?;
    let mut proxy = Proxy::bind(args.listen, to, &Conditions::new(args.impairment)).await?;
    let listen = proxy.local_addr()?;
    if !args.json {
        say(&format!("UDP to {listen} goes to {to}, impaired each way: {}", args.impairment));
        say("Ctrl-C ends it.");
    }
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .context("SIGTERM cannot be listened for")?;
    let mut say_again = interval(SAY_EVERY);
    // The first is at once.
    say_again.tick().await;
    let mut said = proxy.counts();
    let end = async {
        match args.seconds {
            Some(seconds) => sleep(Duration::from_secs_f64(seconds)).await,
            None => core::future::pending().await,
        }
    };
    tokio::pin!(end);
    loop {
        tokio::select! {
            failed = proxy.run() => return Err(failed.into()),
            _ = say_again.tick() => {
                let counts = proxy.counts();
                if !args.json && counts != said {
                    line(&counts);
                }
                said = counts;
            }
            stopped = tokio::signal::ctrl_c() => {
                stopped.context("Ctrl-C cannot be listened for")?;
                break;
            }
            _ = terminate.recv() => break,
            () = &mut end => break,
        }
    }
    let counts = proxy.counts();
    if args.json {
        return print_json(&json!({
            "command": "impair",
            "listen": listen.to_string(),
            "to": to.to_string(),
            "impairment": args.impairment.to_string(),
            "clients": counts.clients,
            "there": object(&counts.there),
            "back": object(&counts.back),
            "refused": counts.refused,
        }));
    }
    line(&counts);
    Ok(())
}

/// The server's address, of the family that is listened on if it has one.
async fn server(to: &str, listen: SocketAddr) -> anyhow::Result<SocketAddr> {
    let parts = to.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let Some((host, port)) = parts else {
        bail!("--to is {to:?}: name the server as HOST:PORT, such as 127.0.0.1:7700");
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let found = resolve(host, port).await?;
    let same = found.iter().find(|addr| addr.is_ipv6() == listen.is_ipv6());
    Ok(*same.unwrap_or(&found[0]))
}

fn line(counts: &ProxyCounts) {
    let way = |counts: &Counts| {
        let Counts { offered, lost, in_outage, duplicated, overflowed } = counts;
        format!(
            "{offered} ({lost} lost, {overflowed} without room, {in_outage} in outages, {duplicated} twice)"
        )
    };
    let (there, back) = (way(&counts.there), way(&counts.back));
    say(&format!(
        "clients {}; datagrams there {there}, back {back}; {} refused",
        counts.clients, counts.refused
    ));
}

fn object(counts: &Counts) -> Value {
    json!({
        "offered": counts.offered,
        "lost": counts.lost,
        "in_outage": counts.in_outage,
        "overflowed": counts.overflowed,
        "duplicated": counts.duplicated,
        "arriving": counts.arriving(),
    })
}
