//! Runs one program and shows its output.

use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use crate::excerpt::Excerpt;
use crate::invocation::Invocation;

/// A program that nobody watches has hung if it prints nothing for so long. The longest silence of one that has not
/// is that of a test which tries all seeds.
const SILENCE_MAX: Duration = Duration::from_secs(20 * 60);

/// The failure of a step.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What to do: mostly the command that repeats it.
    pub(crate) why: String,
    /// The relevant lines of output, for the end of the run.
    pub(crate) excerpt: Vec<String>,
}

impl Failure {
    pub(crate) fn of(why: String) -> Failure {
        Failure { why, excerpt: Vec::new() }
    }

    /// The failure of several programs, if there is one.
    pub(crate) fn all(failures: Vec<Failure>) -> Result<(), Failure> {
        if failures.is_empty() {
            return Ok(());
        }
        let whys: Vec<&str> = failures.iter().map(|failure| failure.why.as_str()).collect();
        let why = whys.join("` and `");
        Err(Failure { why, excerpt: failures.into_iter().flat_map(|failure| failure.excerpt).collect() })
    }
}

/// Runs a program and shows its output; the error is how to repeat it.
pub(crate) fn spawn(root: &Path, invocation: &Invocation) -> Result<(), Failure> {
    println!("    $ {invocation}");
    let failure = |excerpt| Failure { why: invocation.to_string(), excerpt };
    // A person at a terminal can scroll, and programs draw their progress there.
    let ran = if std::io::stdout().is_terminal() {
        watched(root, invocation)
    } else {
        heard(root, invocation, silence_max(), &|line| println!("{line}"))
    };
    match ran {
        Ok((true, _)) => Ok(()),
        Ok((false, excerpt)) => Err(failure(excerpt)),
        Err(error) => {
            println!("{invocation}: could not be started: {error}");
            Err(failure(vec![format!("it could not be started: {error}")]))
        }
    }
}

/// Whether the program succeeded, and the excerpt of its output if it did not.
pub(crate) type Ran = (bool, Vec<String>);

fn watched(root: &Path, invocation: &Invocation) -> std::io::Result<Ran> {
    Ok((invocation.command(root).status()?.success(), Vec::new()))
}

/// The silence after which a program is ended; none beside a person, who ends a program that hangs by Ctrl-C.
pub(crate) fn silence_max() -> Option<Duration> {
    (!std::io::stdin().is_terminal()).then_some(SILENCE_MAX)
}

/// Prints each line of the program's output, and keeps an excerpt of it. With a limit, kills the program and what it
/// started when it prints nothing for so long.
pub(crate) fn heard(
    folder: &Path,
    invocation: &Invocation,
    silence_max: Option<Duration>,
    print: &(impl Fn(&str) + Sync),
) -> std::io::Result<Ran> {
    let mut command = invocation.command(folder);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // Only without a person: Ctrl-C does not reach another group.
    #[cfg(unix)]
    if silence_max.is_some() {
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
    }
    let mut running = command.spawn()?;
    let excerpt = Mutex::new(Excerpt::default());
    let (out, err) = (running.stdout.take(), running.stderr.take());
    // One is enough: a line that does not fit is not needed.
    let (line, lines) = mpsc::sync_channel(1);
    let hung = std::thread::scope(|scope| {
        let (excerpt, other) = (&excerpt, line.clone());
        scope.spawn(move || out.map(|out| pass_on(out, excerpt, &line, print)));
        scope.spawn(move || err.map(|err| pass_on(err, excerpt, &other, print)));
        let silence = silence_max.filter(|silence| !ends_within(&lines, *silence));
        if silence.is_some() {
            kill(&mut running);
        }
        silence
    });
    let succeeded = running.wait()?.success() && hung.is_none();
    let mut excerpt = excerpt.into_inner().map(Excerpt::into_lines).unwrap_or_default();
    excerpt.extend(hung.map(|silence| format!("killed: it printed nothing for {}", seconds(silence))));
    Ok((succeeded, excerpt))
}

/// Waits until both streams have ended. Returns false if no line came for `silence`.
fn ends_within(lines: &Receiver<()>, silence: Duration) -> bool {
    loop {
        match lines.recv_timeout(silence) {
            Ok(()) => {}
            Err(error) => return error == RecvTimeoutError::Disconnected,
        }
    }
}

/// Kills a program with all of its group.
fn kill(running: &mut Child) {
    if cfg!(unix) {
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", running.id())]).status();
    }
    let _ = running.kill();
}

fn pass_on(from: impl Read, excerpt: &Mutex<Excerpt>, heard: &SyncSender<()>, print: impl Fn(&str)) {
    for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        print(&line);
        let _ = heard.try_send(());
        if let Ok(mut excerpt) = excerpt.lock() {
            excerpt.take(&line);
        }
    }
}

pub(crate) fn seconds(elapsed: Duration) -> String {
    format!("{:.1} s", elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_failed_program_said_is_kept() {
        let fails = Invocation::new("ls").args("/no/such/folder");
        let printed = Mutex::new(Vec::new());
        let print = |line: &str| printed.lock().unwrap().push(line.to_owned());
        let (succeeded, excerpt) = heard(Path::new("."), &fails, None, &print).expect("it starts");
        assert!(!succeeded && excerpt.concat().contains("/no/such/folder"), "{excerpt:?}");
        assert_eq!(printed.into_inner().unwrap(), excerpt);
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_what_it_started() {
        // It waits for its child, which holds the output open.
        let hangs = Invocation::new("timeout").args("1000 sleep 1000");
        let limit = Some(Duration::from_millis(200));
        let (succeeded, excerpt) = heard(Path::new("."), &hangs, limit, &|_| {}).expect("it starts");
        assert!(!succeeded && excerpt == ["killed: it printed nothing for 0.2 s"], "{excerpt:?}");
    }
}
