//! Runs the steps, reports on them, and counts.

use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use crate::excerpt::Excerpt;
use crate::options::TestOptions;
use crate::steps::{self, Invocation, Level, Missing, NOT_COVERED, Step, Work};
use crate::{guards, release, tidy, web};

/// A program that nobody watches has hung if it prints nothing for so long. The longest silence of one that has not
/// is that of a test which tries all seeds.
const SILENCE_MAX: Duration = Duration::from_secs(20 * 60);

/// How a step ended; the texts are for a person.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed(Failure),
    Skipped(String),
}

/// The failure of a step.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What to do: mostly the command that repeats it.
    pub(crate) why: String,
    /// The relevant lines of output, for the end of the run.
    pub(crate) excerpt: Vec<String>,
}

impl Failure {
    fn of(why: String) -> Failure {
        Failure { why, excerpt: Vec::new() }
    }
}

/// `cargo xtask tidy`.
pub(crate) fn tidy(root: &Path) -> ExitCode {
    if run_tidy(root).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// `cargo xtask test`. A failed step does not stop those after it: one run shows all that is wrong.
pub(crate) fn test(root: &Path, options: &TestOptions) -> ExitCode {
    let steps = match chosen(steps::steps(root), &options.only) {
        Ok(steps) => steps,
        Err(misuse) => {
            println!("{misuse}");
            return ExitCode::from(2);
        }
    };
    if options.list {
        steps.iter().for_each(print_step);
        return ExitCode::SUCCESS;
    }
    let outcomes: Vec<(&str, Outcome)> =
        steps.iter().map(|step| (step.name, announced(root, step, options))).collect();
    conclude(&outcomes, options)
}

fn chosen(steps: Vec<Step>, only: &[String]) -> Result<Vec<Step>, String> {
    if let Some(unknown) = only.iter().find(|name| steps.iter().all(|step| step.name != name.as_str())) {
        let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
        return Err(format!("there is no step `{unknown}`; the steps are {}", names.join(", ")));
    }
    let wanted = |step: &Step| only.is_empty() || only.iter().any(|name| name == step.name);
    Ok(steps.into_iter().filter(wanted).collect())
}

fn print_step(step: &Step) {
    println!("{:<12} {:<8} {}", step.name, step.level.option(), step.what);
}

/// Runs one step between the line that announces it and the line that says how it ended and how long it took.
fn announced(root: &Path, step: &Step, options: &TestOptions) -> Outcome {
    println!("==> {}: {}", step.name, step.what);
    let start = Instant::now();
    let outcome = outcome(root, step, options);
    let took = seconds(start.elapsed());
    match &outcome {
        Outcome::Passed => println!("<== {}: passed in {took}\n", step.name),
        Outcome::Failed(failure) => println!("<== {}: FAILED in {took}: {}\n", step.name, failure.why),
        Outcome::Skipped(why) => println!("<== {}: skipped, {why}\n", step.name),
    }
    outcome
}

fn outcome(root: &Path, step: &Step, options: &TestOptions) -> Outcome {
    let is_named = !options.only.is_empty();
    let level = match options {
        TestOptions { weekly: true, .. } => Level::Weekly,
        TestOptions { all: true, .. } => Level::Long,
        _ => Level::Quick,
    };
    if step.level > level && !is_named {
        let option = step.level.option();
        return Outcome::Skipped(format!("it is a long run: `cargo xtask test {option}`"));
    }
    // A step that is named, or run with `--all`, must run: a missing prerequisite fails it.
    let must_run = options.all || is_named;
    match (step.plan)(root, level) {
        Ok(work) => match perform(root, work) {
            Ok(()) => Outcome::Passed,
            Err(failure) => {
                Outcome::Failed(Failure { why: format!("rerun `{}`", failure.why), excerpt: failure.excerpt })
            }
        },
        Err(Missing { why, hint }) if must_run => Outcome::Failed(Failure::of(format!("{why}: {hint}"))),
        Err(Missing { why, hint }) => Outcome::Skipped(format!("{why}: {hint}")),
    }
}

/// Does all of the work; the error has the commands that show the failures again.
fn perform(root: &Path, work: Work) -> Result<(), Failure> {
    match work {
        Work::Tidy => run_tidy(root),
        Work::Guards => guards::run(root),
        Work::Release => release::run(root),
        Work::Web(build) => web::run(root, &build),
        Work::Run(invocations) => {
            let failed: Vec<Failure> =
                invocations.iter().filter_map(|invocation| spawn(root, invocation).err()).collect();
            if failed.is_empty() {
                return Ok(());
            }
            let whys: Vec<&str> = failed.iter().map(|failure| failure.why.as_str()).collect();
            let why = whys.join("` and `");
            Err(Failure { why, excerpt: failed.into_iter().flat_map(|failure| failure.excerpt).collect() })
        }
    }
}

fn run_tidy(root: &Path) -> Result<(), Failure> {
    let violations = tidy::check(root);
    violations.iter().for_each(|violation| println!("{violation}"));
    if violations.is_empty() {
        return Ok(());
    }
    println!("tidy: {} violations", violations.len());
    let excerpt = violations.iter().map(ToString::to_string).collect();
    Err(Failure { why: "cargo xtask tidy".to_owned(), excerpt })
}

/// Runs a program and shows its output; the error is how to repeat it.
pub(crate) fn spawn(root: &Path, invocation: &Invocation) -> Result<(), Failure> {
    println!("    $ {invocation}");
    let failure = |excerpt| Failure { why: invocation.to_string(), excerpt };
    // A person at a terminal can scroll, and programs draw their progress there.
    let run = if std::io::stdout().is_terminal() { watched } else { logged };
    match run(root, invocation) {
        Ok((true, _)) => Ok(()),
        Ok((false, excerpt)) => Err(failure(excerpt)),
        Err(error) => {
            println!("{invocation}: could not be started: {error}");
            Err(failure(vec![format!("it could not be started: {error}")]))
        }
    }
}

/// Whether the program succeeded, and the excerpt of its output if it did not.
type Ran = (bool, Vec<String>);

fn watched(root: &Path, invocation: &Invocation) -> std::io::Result<Ran> {
    Ok((invocation.command(root).status()?.success(), Vec::new()))
}

/// Forwards the program's output, and keeps an excerpt of it.
fn logged(root: &Path, invocation: &Invocation) -> std::io::Result<Ran> {
    // A person ends a program that hangs by Ctrl-C.
    let is_unattended = !std::io::stdin().is_terminal();
    heard(root, invocation, is_unattended.then_some(SILENCE_MAX))
}

/// With a limit, kills the program and what it started when it prints nothing for so long.
fn heard(root: &Path, invocation: &Invocation, silence_max: Option<Duration>) -> std::io::Result<Ran> {
    let mut command = invocation.command(root);
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
        scope.spawn(move || out.map(|out| pass_on(out, excerpt, &line, |line| println!("{line}"))));
        scope.spawn(move || err.map(|err| pass_on(err, excerpt, &other, |line| eprintln!("{line}"))));
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

/// Lists what failed and what was skipped; the counts are the last line and stand alone on it.
fn conclude(outcomes: &[(&str, Outcome)], options: &TestOptions) -> ExitCode {
    for (name, outcome) in outcomes {
        match outcome {
            Outcome::Passed => {}
            Outcome::Failed(Failure { why, excerpt }) => {
                println!("{name}: FAILED, {why}");
                excerpt.iter().for_each(|line| println!("    {line}"));
            }
            Outcome::Skipped(why) => println!("{name}: skipped, {why}"),
        }
    }
    if options.only.is_empty() {
        println!("{NOT_COVERED}");
    }
    println!("{}", counts(outcomes));
    let failed = outcomes.iter().any(|(_, outcome)| matches!(outcome, Outcome::Failed(_)));
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn counts(outcomes: &[(&str, Outcome)]) -> String {
    let count = |of: fn(&Outcome) -> bool| outcomes.iter().filter(|(_, outcome)| of(outcome)).count();
    let passed = count(|outcome| matches!(outcome, Outcome::Passed));
    let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
    format!("{passed} passed, {failed} failed, {skipped} skipped")
}

fn seconds(elapsed: Duration) -> String {
    format!("{:.1} s", elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long_step_without_its_tool() -> Step {
        let plan = |_: &Path, _| Err(Missing { why: "no tool".to_owned(), hint: "get it".to_owned() });
        Step { name: "tool", what: "needs a tool", level: Level::Long, plan }
    }

    fn outcome_with(step: &Step, options: &TestOptions) -> Outcome {
        outcome(Path::new("."), step, options)
    }

    #[test]
    fn a_long_run_is_skipped_by_default_and_fails_under_all() {
        let step = long_step_without_its_tool();
        let skipped = outcome_with(&step, &TestOptions::default());
        assert_eq!(skipped, Outcome::Skipped("it is a long run: `cargo xtask test --all`".to_owned()));
        let all = TestOptions { all: true, ..TestOptions::default() };
        assert_eq!(outcome_with(&step, &all), Outcome::Failed(Failure::of("no tool: get it".to_owned())));
    }

    #[test]
    fn a_weekly_run_is_skipped_under_all_and_no_failure() {
        let step = Step { level: Level::Weekly, ..long_step_without_its_tool() };
        let all = TestOptions { all: true, ..TestOptions::default() };
        let skipped = Outcome::Skipped("it is a long run: `cargo xtask test --weekly`".to_owned());
        assert_eq!(outcome_with(&step, &all), skipped);
        let weekly = TestOptions { all: true, weekly: true, ..TestOptions::default() };
        assert_eq!(outcome_with(&step, &weekly), Outcome::Failed(Failure::of("no tool: get it".to_owned())));
    }

    #[test]
    fn a_short_step_without_its_tool_is_skipped_unless_named() {
        let step = Step { level: Level::Quick, ..long_step_without_its_tool() };
        let skipped = outcome_with(&step, &TestOptions::default());
        assert_eq!(skipped, Outcome::Skipped("no tool: get it".to_owned()));
        let named = TestOptions { only: vec!["tool".to_owned()], ..TestOptions::default() };
        assert_eq!(outcome_with(&step, &named), Outcome::Failed(Failure::of("no tool: get it".to_owned())));
    }

    #[test]
    fn a_program_that_fails_names_its_command() {
        let programs =
            [Invocation::new("false").args("quietly"), Invocation::new("true"), Invocation::new("false")];
        let failing = Work::Run(programs.into());
        let why = |work| perform(Path::new("."), work).map_err(|failure| failure.why);
        assert_eq!(why(failing), Err("false quietly` and `false".to_owned()));
        let absent = Work::Run(vec![Invocation::new("no-such-program")]);
        assert_eq!(why(absent), Err("no-such-program".to_owned()));
    }

    #[test]
    fn what_a_failed_program_said_is_kept() {
        let fails = Invocation::new("ls").args("/no/such/folder");
        let (succeeded, excerpt) = logged(Path::new("."), &fails).expect("it starts");
        assert!(!succeeded && excerpt.concat().contains("/no/such/folder"), "{excerpt:?}");
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_what_it_started() {
        // It waits for its child, which holds the output open.
        let hangs = Invocation::new("timeout").args("1000 sleep 1000");
        let limit = Some(Duration::from_millis(200));
        let (succeeded, excerpt) = heard(Path::new("."), &hangs, limit).expect("it starts");
        assert!(!succeeded && excerpt == ["killed: it printed nothing for 0.2 s"], "{excerpt:?}");
    }

    #[test]
    fn the_last_line_counts_the_steps() {
        let outcomes = [
            ("a", Outcome::Passed),
            ("b", Outcome::Failed(Failure::default())),
            ("c", Outcome::Passed),
            ("d", Outcome::Skipped(String::new())),
        ];
        assert_eq!(counts(&outcomes), "2 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn an_unknown_step_is_refused() {
        let refused = chosen(vec![long_step_without_its_tool()], &["tols".to_owned()]);
        assert!(refused.is_err_and(|misuse| misuse.contains("`tols`") && misuse.contains("tool")));
    }
}
