//! The binary as a user runs it, with its own registry.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// Only a hang takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// A machine to run commands on: a folder for the registry, and no settings from outside.
pub(crate) struct Machine {
    folder: TempDir,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Machine { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_parlor"));
        command.args(args).env("PARLOR_REGISTRY", self.path("registry")).stdin(Stdio::null());
        for name in [
            "PARLOR_SERVER",
            "PARLOR_NAME",
            "PARLOR_SECRET",
            "PARLOR_TOKEN",
            "PARLOR_ADMISSION_KEY",
            "PARLOR_CA",
            "PARLOR_CONFIG",
            "PARLOR_PORT",
            "PARLOR_IMPAIR",
            "PARLOR_LAN",
            "PARLOR_DATA",
            "PARLOR_STORE",
            "PARLOR_METRICS",
            "PARLOR_ACCOUNTS",
            "PARLOR_OPERATOR",
            "PARLOR_OPERATOR_KEY",
            "PARLOR_SESSION",
        ] {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Self::spawn(self.command(args))
    }

    /// Starts a command with this limit of open files.
    #[cfg(unix)]
    pub(crate) fn start_with_files(&self, limit: u32, args: &[&str]) -> Running {
        let command = self.command(args);
        let mut limited = Command::new("sh");
        limited.args(["-c", &format!("ulimit -n {limit} && exec \"$@\""), "sh"]);
        limited.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        Self::spawn(limited)
    }

    fn spawn(mut command: Command) -> Running {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the binary was built");
        let stdin = child.stdin.take();
        let stdout = lines(child.stdout.take().expect("it is piped"));
        let stderr = lines(child.stderr.take().expect("it is piped"));
        Running { child, stdin, stdout, stderr }
    }

    /// Starts a server on any free port, with more arguments, and gives its address beside it.
    pub(crate) fn serve(&self, args: &[&str]) -> (Running, String) {
        let server = self.start(&[&["serve", "--port", "0", "--log", "warn"], args].concat());
        let said = server.says("Parlor ");
        let port = said.rsplit(' ').next().expect("the port ends the line");
        (server, format!("127.0.0.1:{port}"))
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        let mut command = self.command(args);
        let child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary was built");
        let (pid, (sender, ended)) = (child.id().to_string(), sync_channel(1));
        thread::spawn(move || sender.send(child.wait_with_output()));
        ended.recv_timeout(PATIENCE).map_or_else(
            |_| {
                let _ = Command::new("kill").args(["-KILL", &pid]).status();
                panic!("{args:?} did not end")
            },
            |output| output.expect("its output can be read"),
        )
    }
}

/// A command that runs.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = sync_channel(100_000);
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// The rest of the first line that begins like this, or all that came on the other stream.
fn find(lines: &Receiver<String>, start: &str, others: &Receiver<String>) -> String {
    let no_line = || {
        let next = || others.recv_timeout(Duration::from_secs(1)).ok();
        let others: Vec<String> = core::iter::from_fn(next).collect();
        panic!("no line began with {start:?}, and beside it came {others:?}")
    };
    loop {
        let line = lines.recv_timeout(PATIENCE).unwrap_or_else(|_| no_line());
        if let Some(rest) = line.strip_prefix(start) {
            return rest.to_owned();
        }
    }
}

/// A free port for a server that is started again on it. It lies below the range from which connections take theirs: a
/// player that dials a port of that range again and again, while nobody listens there, can get it for itself.
pub(crate) fn port_of_its_own() -> u16 {
    let first = 20_000 + u16::try_from(std::process::id() % 8_000).unwrap_or(0);
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (first..32_000).find(is_free).expect("a free port")
}

impl Running {
    /// The rest of the first line of standard output that begins like this.
    pub(crate) fn says(&self, start: &str) -> String {
        find(&self.stdout, start, &self.stderr)
    }

    /// The rest of the first line of standard error that begins like this.
    pub(crate) fn complains(&self, start: &str) -> String {
        find(&self.stderr, start, &self.stdout)
    }

    /// What is left of standard error once it has ended.
    pub(crate) fn rest_of_complaints(&self) -> Vec<String> {
        self.stderr.iter().collect()
    }

    /// Types a line.
    pub(crate) fn types(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("it is piped");
        writeln!(stdin, "{line}").expect("it reads");
    }

    /// Asks it to stop, as a service manager does.
    #[cfg(unix)]
    pub(crate) fn terminate(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("every Unix has kill").success());
    }

    /// Kills it, so that it can say nothing any more.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        // What it held, such as the lock of its store, is free only then.
        self.child.wait().expect("it was killed");
    }

    /// The report that it prints at its end.
    pub(crate) fn report(mut self) -> Value {
        let line = self.stdout.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            panic!("no report came; on standard error: {:?}", self.stderr.try_iter().collect::<Vec<_>>())
        });
        self.child.wait().expect("it ends after its report");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line}"))
    }

    /// Waits for its end, and says whether it succeeded.
    pub(crate) fn ends_well(&mut self) -> bool {
        self.child.wait().expect("it ends").success()
    }

    /// How it ended.
    pub(crate) fn succeeds(mut self) -> bool {
        self.child.wait().expect("it ends").success()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
