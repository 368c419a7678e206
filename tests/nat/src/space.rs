//! A network namespace: a separate machine as far as its network goes.

use crate::fault::{Fault, Outcome};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{File, read_dir};
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

/// Prefix of all names; the id of the creating process follows.
const PREFIX: &str = "parlor-nat-";
/// Folder in which `ip netns` keeps them.
const FOLDER: &str = "/run/netns";

/// A namespace. Dropping it removes it with its interfaces.
#[derive(Debug)]
pub(crate) struct Space {
    name: String,
}

impl Space {
    /// Creates a namespace. Its name contains the process id, so that remains of a crash can be told from
    /// namespaces in use.
    pub(crate) fn new(name: &str) -> Outcome<Space> {
        let name = format!("{PREFIX}{}-{name}", std::process::id());
        succeed(Command::new("ip").args(["netns", "add", &name]))?;
        let space = Space { name };
        space.ip("link set lo up")?;
        Ok(space)
    }

    /// Its name for `ip`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip` in it with `args`, which are split at spaces.
    pub(crate) fn ip(&self, args: &str) -> Outcome<String> {
        succeed(Command::new("ip").args(["-n", &self.name]).args(args.split_whitespace()))
    }

    /// Runs a command line in it, which is split at spaces. Returns its output.
    pub(crate) fn run(&self, line: &str) -> Outcome<String> {
        succeed(Command::new("ip").args(["netns", "exec", &self.name]).args(line.split_whitespace()))
    }

    /// Adds rules of nftables.
    pub(crate) fn rules(&self, rules: &str) -> Outcome<()> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, "nft", "-f", "-"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Fault::during("nft could not be started"))?;
        let mut stdin = child.stdin.take().expect("it is piped");
        stdin.write_all(rules.as_bytes()).map_err(Fault::during("nft takes no rules"))?;
        drop(stdin);
        let output = child.wait_with_output().map_err(Fault::during("nft"))?;
        checked(&command, &output).map(drop)
    }

    /// A command that runs a program in it.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// Runs a job in it, on a separate thread. Sockets that it opens stay in the namespace, whichever thread
    /// uses them.
    pub(crate) fn within<T: Send>(&self, job: impl FnOnce() -> T + Send) -> Outcome<T> {
        let place = format!("{FOLDER}/{}", self.name);
        let space = File::open(&place).map_err(Fault::during(&place))?;
        let inside = move || {
            move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|error| Fault::new(format!("{place} cannot be entered: {error}")))?;
            Ok(job())
        };
        thread::scope(|scope| scope.spawn(inside).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        remove(&self.name);
    }
}

/// Removes namespaces of aborted runs, and kills the programs in them.
pub(crate) fn sweep() {
    let Ok(entries) = read_dir(FOLDER) else { return };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    for name in names.filter(|name| is_left(name)) {
        println!("    an earlier run left {name}: removed");
        remove(&name);
    }
}

/// Whether the process that created a namespace is gone.
fn is_left(name: &str) -> bool {
    let id = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
    id.and_then(|id| id.parse::<u32>().ok()).is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists())
}

/// Failures are ignored: the target is gone already.
fn remove(name: &str) {
    let pids = succeed(Command::new("ip").args(["netns", "pids", name])).unwrap_or_default();
    for pid in pids.split_whitespace() {
        let _ = succeed(Command::new("kill").args(["-KILL", pid]));
    }
    let _ = succeed(Command::new("ip").args(["netns", "del", name]));
}

/// Runs a command to its end. Returns its output.
pub(crate) fn succeed(command: &mut Command) -> Outcome<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(Fault::during(format_args!("{command:?} could not be started")))?;
    checked(command, &output)
}

fn checked(command: &Command, output: &Output) -> Outcome<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(Fault::new(format!("{command:?} failed: {}", text(&output.stderr))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_dead_process_made_is_left() {
        let of = |id: &str| format!("{PREFIX}{id}-cut-home");
        assert!(!is_left(&of(&std::process::id().to_string())));
        // Above Linux's maximum process id.
        assert!(is_left(&of("4194305")));
        assert!(!is_left("somebody-elses") && !is_left(&of("")));
    }
}
