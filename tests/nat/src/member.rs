//! The server and the members of rooms, as programs on machines of a scenario's network.

use crate::fault::{Fault, Outcome, ensure};
use crate::log::Log;
use crate::net::{Machine, Public, Switch};
use crate::program::Program;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

/// The server's address.
pub(crate) const HUB: Public = Public(1);
/// Its port.
pub(crate) const PORT: u16 = 7700;
/// Minimum round trip to the server, in milliseconds: the networks themselves add nothing.
pub(crate) const RTT_MS: f64 = 100.0;
/// Impairment of the server's sockets for that round trip, each way.
const IMPAIRMENT: &str = "latency=50ms";
/// Seconds after which a member ends by itself, in case the test has died.
const SECONDS: &str = "170";
/// Numbers that each member sends to the others per second.
pub(crate) const TALK_HZ: u64 = 10;

/// The environment of a scenario's programs: the binary and a folder.
#[derive(Debug)]
pub(crate) struct Workshop {
    binary: PathBuf,
    folder: PathBuf,
}

/// The server, on a public machine.
#[derive(Debug)]
pub(crate) struct Hub {
    machine: Machine,
    fingerprint: String,
    _program: Program,
}

/// A member of a room.
pub(crate) type Member = Program;

impl Workshop {
    /// Creates it with a fresh folder.
    pub(crate) fn new(binary: &Path, scenario: &str) -> Outcome<Workshop> {
        let folder = std::env::temp_dir().join(format!("parlor-nat-{}-{scenario}", std::process::id()));
        fs::create_dir_all(&folder).map_err(Fault::during(format_args!("{}", folder.display())))?;
        Ok(Workshop { binary: binary.to_owned(), folder })
    }

    /// Starts the binary on a machine, with arguments that are split at spaces.
    pub(crate) fn start(&self, name: &str, machine: &Machine, args: &str) -> Outcome<Program> {
        let args: Vec<&str> = args.split_whitespace().collect();
        Program::start(name, &machine.space, &self.binary, &self.folder, &args)
    }

    /// Starts the server, and waits until it listens.
    pub(crate) fn hub(&self, internet: &Switch) -> Outcome<Hub> {
        let machine = internet.public(HUB)?;
        let args = format!("serve --port {PORT} --log warn --impair {IMPAIRMENT}");
        let program = self.start("server", &machine, &args)?;
        let address = program.says("PARLOR_SERVER=")?;
        let fingerprint = address.rsplit('#').next().unwrap_or_default().to_owned();
        Ok(Hub { machine, fingerprint, _program: program })
    }

    /// Opens a room from a machine. Also returns its code. `more` are additional arguments.
    pub(crate) fn host(&self, hub: &Hub, machine: &Machine, more: &str) -> Outcome<(Member, String)> {
        let server = hub.server(HUB);
        let mut host =
            self.start("host", machine, &format!("play --name host {} {server} {more}", usual()))?;
        let code =
            host.until("its room", |log| Some(log.all("open").next()?["code"].as_str()?.to_owned()))?;
        Ok((host, code))
    }

    /// Joins a room from a machine, and waits for its state.
    pub(crate) fn guest(&self, hub: &Hub, machine: &Machine, code: &str, more: &str) -> Outcome<Member> {
        self.guest_by(hub, HUB, machine, code, more)
    }

    /// Joins through another address than the server's own.
    pub(crate) fn guest_by(
        &self,
        hub: &Hub,
        by: Public,
        machine: &Machine,
        code: &str,
        more: &str,
    ) -> Outcome<Member> {
        let args = format!("bots --count 1 --join {code} {} {} {more}", usual(), hub.server(by));
        let name = machine.space.name().rsplit('-').next().unwrap_or_default();
        let mut guest = self.start(&format!("guest {name}"), machine, &args)?;
        guest.until("the state of the room", |log| (log.count("/updates_decoded") >= 60).then_some(()))?;
        Ok(guest)
    }

    /// The binary's output with these arguments, on a machine.
    pub(crate) fn output(&self, machine: &Machine, args: &str) -> Outcome<String> {
        self.start("parlor", machine, args)?.output()
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn usual() -> String {
    format!("--headless --events --talk {TALK_HZ} --seconds {SECONDS}")
}

impl Hub {
    /// The arguments that select the server, by its own address or by one that forwards to it.
    fn server(&self, by: Public) -> String {
        format!("--server {}:{PORT}#{}", by.address(), self.fingerprint)
    }

    /// The server's counters.
    pub(crate) fn stats(&self) -> Outcome<Value> {
        let answer = self.machine.space.within(ask)?.map_err(Fault::during("GET /stats"))?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body).map_err(|error| Fault::new(format!("GET /stats: {error} in {answer:?}")))
    }

    /// One of its counters.
    pub(crate) fn count(&self, counter: &str) -> Outcome<u64> {
        let stats = self.stats()?;
        stats[counter].as_u64().ok_or_else(|| Fault::new(format!("GET /stats has no {counter}: {stats}")))
    }
}

fn ask() -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", PORT))?;
    stream.write_all(b"GET /stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Waits until a member has received `more` updates.
pub(crate) fn updates(member: &mut Member, more: u64) -> Outcome<()> {
    let enough = member.log().count("/updates_decoded") + more;
    let what = format!("{more} more updates");
    member.until(&what, |log| (log.count("/updates_decoded") >= enough).then_some(()))
}

/// Waits until each member of a room has received what all others have sent by now. Fails if anything was
/// lost or duplicated.
pub(crate) fn heard_all(members: &mut [&mut Member]) -> Outcome<u64> {
    let nothing = vec![0; members.len()];
    heard_all_but(members, &nothing)
}

/// As [`heard_all`], of members that had lost so many messages before.
pub(crate) fn heard_all_but(members: &mut [&mut Member], lost_before: &[u64]) -> Outcome<u64> {
    let mut said = Vec::new();
    for member in members.iter_mut() {
        let id = member.until("its place", Log::member)?;
        said.push((id, member.log().count("/said")));
    }
    let mut numbers = 0;
    for (member, lost_before) in members.iter_mut().zip(lost_before) {
        let me = member.until("its place", Log::member)?;
        for (from, said) in said.iter().filter(|(from, _)| *from != me) {
            let pointer = format!("/heard/{from}/last");
            let what = format!("the number {said} of player {from}");
            member.until(&what, |log| (log.count(&pointer) >= *said).then_some(()))?;
            numbers += said;
        }
        let lost = member.log().unheard().saturating_sub(*lost_before);
        ensure(lost == 0, || format!("{}: {lost} reliable messages were lost or came twice", member.name()))?;
    }
    Ok(numbers)
}

/// Fails if a member's connection had trouble since the given line of its log.
pub(crate) fn undisturbed(members: &mut [&mut Member], since: &[usize]) -> Outcome<()> {
    for (member, since) in members.iter_mut().zip(since) {
        let troubles: Vec<String> = member.log().troubles(*since).iter().map(ToString::to_string).collect();
        ensure(troubles.is_empty(), || format!("{}: {}", member.name(), troubles.join(", ")))?;
    }
    Ok(())
}

/// The current ends of the members' logs.
pub(crate) fn marks(members: &mut [&mut Member]) -> Vec<usize> {
    members.iter_mut().map(|member| member.log().len()).collect()
}
