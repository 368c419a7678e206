//! Runs the steps, says what it does, and counts.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::options::TestOptions;
use crate::steps::{self, Invocation, Missing, NOT_COVERED, Step, Work};
use crate::{guards, tidy};

/// How a step ended; the text of the last two is for a person.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
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
    let when = if step.long { "--all" } else { "" };
    println!("{:<8} {when:<6} {}", step.name, step.what);
}

/// Runs one step between the line that announces it and the line that says how it ended and how long it took.
fn announced(root: &Path, step: &Step, options: &TestOptions) -> Outcome {
    println!("==> {}: {}", step.name, step.what);
    let start = Instant::now();
    let outcome = outcome(root, step, options);
    let took = seconds(start.elapsed());
    match &outcome {
        Outcome::Passed => println!("<== {}: passed in {took}\n", step.name),
        Outcome::Failed(why) => println!("<== {}: FAILED in {took}: {why}\n", step.name),
        Outcome::Skipped(why) => println!("<== {}: skipped, {why}\n", step.name),
    }
    outcome
}

fn outcome(root: &Path, step: &Step, options: &TestOptions) -> Outcome {
    // Who names a step, or asks for all, wants it run, not excused.
    let must_run = options.all || !options.only.is_empty();
    if step.long && !must_run {
        return Outcome::Skipped("it is a long run: `cargo xtask test --all`".to_owned());
    }
    match (step.plan)(root) {
        Ok(work) => match perform(root, work) {
            Ok(()) => Outcome::Passed,
            Err(rerun) => Outcome::Failed(format!("rerun `{rerun}`")),
        },
        Err(Missing { why, hint }) if must_run => Outcome::Failed(format!("{why}: {hint}")),
        Err(Missing { why, hint }) => Outcome::Skipped(format!("{why}: {hint}")),
    }
}

/// Does all of the work; the error is the commands that show the failures again.
fn perform(root: &Path, work: Work) -> Result<(), String> {
    match work {
        Work::Tidy => run_tidy(root),
        Work::Guards => guards::run(root),
        Work::Run(invocations) => {
            let run = |invocation| spawn(root, invocation).err();
            let failed: Vec<String> = invocations.iter().filter_map(run).collect();
            if failed.is_empty() { Ok(()) } else { Err(failed.join("` and `")) }
        }
    }
}

fn run_tidy(root: &Path) -> Result<(), String> {
    let violations = tidy::check(root);
    violations.iter().for_each(|violation| println!("{violation}"));
    if violations.is_empty() {
        return Ok(());
    }
    println!("tidy: {} violations", violations.len());
    Err("cargo xtask tidy".to_owned())
}

fn spawn(root: &Path, invocation: &Invocation) -> Result<(), String> {
    println!("    $ {invocation}");
    match invocation.command(root).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(invocation.to_string()),
        Err(error) => {
            println!("{invocation}: could not be started: {error}");
            Err(invocation.to_string())
        }
    }
}

/// Lists what failed and what was skipped; the counts are the last line and stand alone on it.
fn conclude(outcomes: &[(&str, Outcome)], options: &TestOptions) -> ExitCode {
    for (name, outcome) in outcomes {
        match outcome {
            Outcome::Passed => {}
            Outcome::Failed(why) => println!("{name}: FAILED, {why}"),
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
        let plan = |_: &Path| Err(Missing { why: "no tool".to_owned(), hint: "get it".to_owned() });
        Step { name: "tool", what: "needs a tool", long: true, plan }
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
        assert_eq!(outcome_with(&step, &all), Outcome::Failed("no tool: get it".to_owned()));
    }

    #[test]
    fn a_short_step_without_its_tool_is_skipped_unless_named() {
        let step = Step { long: false, ..long_step_without_its_tool() };
        let skipped = outcome_with(&step, &TestOptions::default());
        assert_eq!(skipped, Outcome::Skipped("no tool: get it".to_owned()));
        let named = TestOptions { only: vec!["tool".to_owned()], ..TestOptions::default() };
        assert_eq!(outcome_with(&step, &named), Outcome::Failed("no tool: get it".to_owned()));
    }

    #[test]
    fn a_program_that_fails_names_its_command() {
        let programs =
            [Invocation::new("false").args("quietly"), Invocation::new("true"), Invocation::new("false")];
        let failing = Work::Run(programs.into());
        assert_eq!(perform(Path::new("."), failing), Err("false quietly` and `false".to_owned()));
        let absent = Work::Run(vec![Invocation::new("no-such-program")]);
        assert_eq!(perform(Path::new("."), absent), Err("no-such-program".to_owned()));
    }

    #[test]
    fn the_last_line_counts_the_steps() {
        let outcomes = [
            ("a", Outcome::Passed),
            ("b", Outcome::Failed(String::new())),
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
