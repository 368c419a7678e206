//! Runs the steps, reports on them, and counts.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use crate::invocation::Invocation;
use crate::options::{DistOptions, TestOptions};
use crate::plan::{Missing, Step, Work};
use crate::process::{Failure, heard, seconds, silence_max, spawn};
use crate::steps::{NOT_COVERED, STEPS};
use crate::{dist, guards, peers, programs, tidy, web};

/// How a step ended; the texts are for a person.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed(Failure),
    Skipped(String),
}

/// `cargo xtask tidy`.
pub(crate) fn tidy(root: &Path) -> ExitCode {
    if run_tidy(root).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// `cargo xtask peers`.
pub(crate) fn peers(root: &Path) -> ExitCode {
    ended("peers", peers::build(root))
}

/// `cargo xtask dist`.
pub(crate) fn dist(root: &Path, options: &DistOptions) -> ExitCode {
    ended("dist", dist::make(root, options))
}

/// Says why a command failed, if it did.
fn ended(command: &str, done: Result<(), Failure>) -> ExitCode {
    let Err(Failure { why, excerpt }) = done else { return ExitCode::SUCCESS };
    println!("cargo xtask {command}: {why}");
    excerpt.iter().for_each(|line| println!("    {line}"));
    ExitCode::FAILURE
}

/// `cargo xtask test`. A failed step does not stop those after it: one run shows all that is wrong.
pub(crate) fn test(root: &Path, options: &TestOptions) -> ExitCode {
    let steps = match chosen(&options.only) {
        Ok(steps) => steps,
        Err(misuse) => {
            println!("{misuse}");
            return ExitCode::from(2);
        }
    };
    if options.list {
        steps.into_iter().for_each(print_step);
        return ExitCode::SUCCESS;
    }
    conclude(&run(root, &steps, options), options)
}

/// The steps before the first that runs [beside](Step::is_beside) others, all that do, and the others.
fn lanes<'a>(steps: &'a [&'a Step], options: &TestOptions) -> [Vec<&'a Step>; 3] {
    let is_beside = |step: &&Step| step.is_beside && options.all && options.only.is_empty();
    let begin = steps.iter().position(is_beside).unwrap_or(steps.len());
    let (beside, after) = steps[begin..].iter().copied().partition(is_beside);
    [steps[..begin].to_vec(), beside, after]
}

/// Runs steps in their order, and some of them beside those that follow.
fn run(root: &Path, steps: &[&Step], options: &TestOptions) -> Vec<(&'static str, Outcome)> {
    let [before, beside, after] = lanes(steps, options);
    let in_turn = |step: &&Step| (step.name, announced(step, || outcome(root, step, options)));
    let mut outcomes: Vec<_> = before.iter().map(in_turn).collect();
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            let alone = |step: &&Step| (step.name, announced(step, || run_beside(root, step, options)));
            beside.iter().map(alone).collect::<Vec<_>>()
        });
        outcomes.extend(after.iter().map(in_turn));
        outcomes.extend(beside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    });
    outcomes
}

/// Runs a step in a process of its own, to which the others go before. Its lines begin with its name.
fn run_beside(root: &Path, step: &Step, options: &TestOptions) -> Outcome {
    let again = format!("cargo xtask test {} --only {}", options.level().option(), step.name);
    let nice = Invocation::new("nice").args("-n 10").args(&again);
    match heard(root, &nice, silence_max(), &|line| println!("{}: {line}", step.name)) {
        Ok((true, _)) => Outcome::Passed,
        Ok((false, excerpt)) => Outcome::Failed(Failure { why: format!("rerun `{again}`"), excerpt }),
        Err(error) => Outcome::Failed(Failure::of(format!("`{nice}` could not be started: {error}"))),
    }
}

fn chosen(only: &[String]) -> Result<Vec<&'static Step>, String> {
    if let Some(unknown) = only.iter().find(|name| STEPS.iter().all(|step| step.name != name.as_str())) {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        return Err(format!("there is no step `{unknown}`; the steps are {}", names.join(", ")));
    }
    let wanted = |step: &&Step| only.is_empty() || only.iter().any(|name| name == step.name);
    Ok(STEPS.iter().filter(wanted).collect())
}

fn print_step(step: &Step) {
    println!("{:<12} {:<8} {}", step.name, step.level.option(), step.what);
}

/// Runs one step between the line that announces it and the line that says how it ended and how long it took.
fn announced(step: &Step, run: impl FnOnce() -> Outcome) -> Outcome {
    println!("==> {}: {}", step.name, step.what);
    let start = Instant::now();
    let outcome = run();
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
    let level = options.level();
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
        Err(missing) if must_run => Outcome::Failed(missing.into()),
        Err(Missing { why, hint }) => Outcome::Skipped(format!("{why}: {hint}")),
    }
}

/// Does all of the work; the error has the commands that show the failures again.
fn perform(root: &Path, work: Work) -> Result<(), Failure> {
    match work {
        Work::Tidy => run_tidy(root),
        Work::Tests(tests) => programs::run(root, &tests),
        Work::Guards(extent) => guards::run(root, extent),
        Work::Web(build) => web::run(root, &build),
        Work::Run(invocations) => {
            Failure::all(invocations.iter().filter_map(|invocation| spawn(root, invocation).err()).collect())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Level, long};

    fn long_step_without_its_tool() -> Step {
        let plan = |_: &Path, _| Err(Missing { why: "no tool".to_owned(), hint: "get it".to_owned() });
        long("tool", "needs a tool", plan)
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
    fn only_in_a_run_of_all_do_steps_run_beside_those_that_follow() {
        let plan = |_: &Path, _| Ok(Work::Run(Vec::new()));
        let steps = [
            long("a", "", plan),
            long("b", "", plan).beside(),
            long("c", "", plan),
            long("d", "", plan).beside(),
        ];
        let steps: Vec<&Step> = steps.iter().collect();
        let names = |options: TestOptions| {
            lanes(&steps, &options).map(|lane| lane.iter().map(|step| step.name).collect::<String>())
        };
        let all = TestOptions { all: true, ..TestOptions::default() };
        assert_eq!(names(all), ["a", "bd", "c"]);
        let named = TestOptions { all: true, only: vec!["b".to_owned()], ..TestOptions::default() };
        assert_eq!(names(named), ["abcd", "", ""]);
        assert_eq!(names(TestOptions::default()), ["abcd", "", ""]);
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
        let refused = chosen(&["tols".to_owned()]);
        assert!(refused.is_err_and(|misuse| misuse.contains("`tols`") && misuse.contains("tidy, fmt")));
    }
}
