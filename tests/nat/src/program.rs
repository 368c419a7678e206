//! A running `parlor` program.

use crate::fault::{Fault, Outcome};
use crate::log::Log;
use crate::space::Space;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// A limit that only a hang reaches.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);
/// Unread lines at most: far more than a program prints in its time.
const LINES_MAX: usize = 100_000;
/// Environment variables that must not leak into the programs.
const SETTINGS: [&str; 8] = [
    "PARLOR_SERVER",
    "PARLOR_NAME",
    "PARLOR_SECRET",
    "PARLOR_TOKEN",
    "PARLOR_CA",
    "PARLOR_CONFIG",
    "PARLOR_IMPAIR",
    "PARLOR_LAN",
];

/// A running program. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Program {
    name: String,
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
    log: Log,
}

impl Program {
    /// Starts `binary` in a namespace, with its own folder for the registry of local rooms.
    pub(crate) fn start(
        name: &str,
        space: &Space,
        binary: &Path,
        folder: &Path,
        args: &[&str],
    ) -> Outcome<Program> {
        let mut command = space.command(binary);
        command.args(args).env("PARLOR_REGISTRY", folder.join(format!("{}-{name}", space.name())));
        for setting in SETTINGS {
            command.env_remove(setting);
        }
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.map_err(Fault::during(format_args!("{name} could not be started")))?;
        let stdout = lines(child.stdout.take().expect("it is piped"));
        let stderr = lines(child.stderr.take().expect("it is piped"));
        Ok(Program { name: name.to_owned(), child, stdout, stderr, log: Log::default() })
    }

    /// Its name in this test.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its output so far.
    pub(crate) fn log(&mut self) -> &Log {
        self.stdout.try_iter().for_each(|line| self.log.push(&line));
        &self.log
    }

    /// The rest of the first line of standard output with this prefix.
    pub(crate) fn says(&self, start: &str) -> Outcome<String> {
        let until = Instant::now() + PATIENCE;
        while let Ok(line) = self.stdout.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if let Some(rest) = line.trim_start().strip_prefix(start) {
                return Ok(rest.to_owned());
            }
        }
        Err(self.fault(&format!("did not print {start:?}")))
    }

    /// Its whole output; waits until it ends by itself.
    pub(crate) fn output(&self) -> Outcome<String> {
        let (until, mut output) = (Instant::now() + PATIENCE, String::new());
        loop {
            match self.stdout.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => output.push_str(&line),
                Err(RecvTimeoutError::Disconnected) => return Ok(output),
                Err(RecvTimeoutError::Timeout) => return Err(self.fault("does not end")),
            }
        }
    }

    /// Waits until its log shows something.
    pub(crate) fn until<T>(&mut self, what: &str, shows: impl Fn(&Log) -> Option<T>) -> Outcome<T> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = shows(self.log()) {
                return Ok(found);
            }
            match self.stdout.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => self.log.push(&line),
                Err(_) => return Err(self.fault(&format!("waited in vain for {what}"))),
            }
        }
    }

    /// A fault with the program's last output.
    pub(crate) fn fault(&self, what: &str) -> Fault {
        let complaints: String = self.stderr.try_iter().map(|line| format!("\n      {line}")).collect();
        Fault::new(format!("{}: {what}; it said last:{}{complaints}", self.name, self.log.tail()))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // If it has ended already, there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = sync_channel(LINES_MAX);
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
