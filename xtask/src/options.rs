//! The command line.

use crate::plan::Level;

/// The command to run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Tidy,
    Web,
    Peers,
    Dist(DistOptions),
    Test(TestOptions),
}

/// How `cargo xtask test` runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestOptions {
    /// Includes long runs; nothing may be skipped.
    pub(crate) all: bool,
    /// Includes steps that take an hour or test third-party code, and everything else.
    pub(crate) weekly: bool,
    /// Print the steps instead of running them.
    pub(crate) list: bool,
    /// The steps to run; all of them if empty.
    pub(crate) only: Vec<String>,
}

impl TestOptions {
    /// The level of the steps that run.
    pub(crate) fn level(&self) -> Level {
        match self {
            TestOptions { weekly: true, .. } => Level::Weekly,
            TestOptions { all: true, .. } => Level::Long,
            _ => Level::Quick,
        }
    }
}

/// What `cargo xtask dist` makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DistOptions {
    /// Leaves the npm packages out, which need Node and the WebAssembly of pages.
    pub(crate) no_npm: bool,
    /// Adds what belongs to another machine than this one, such as `aarch64`.
    pub(crate) target: Option<String>,
}

/// Reads the arguments that follow `cargo xtask`; the error says what is wrong with them.
pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Command, String> {
    // `cargo xtask test -- --only tidy` means the same as without the `--`.
    let mut args = args.filter(|arg| arg != "--");
    let command = args.next().unwrap_or_else(|| "help".to_owned());
    match command.as_str() {
        "test" => parse_test(args).map(Command::Test),
        "tidy" => no_more(args).map(|()| Command::Tidy),
        "web" => no_more(args).map(|()| Command::Web),
        "peers" => no_more(args).map(|()| Command::Peers),
        "dist" => parse_dist(args).map(Command::Dist),
        "help" | "--help" | "-h" => Ok(Command::Help),
        other => Err(format!("there is no command `{other}`")),
    }
}

fn parse_test(mut args: impl Iterator<Item = String>) -> Result<TestOptions, String> {
    let mut options = TestOptions::default();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--all" => options.all = true,
            "--weekly" => (options.all, options.weekly) = (true, true),
            "--list" => options.list = true,
            "--only" => {
                let step = args.next().ok_or("`--only` needs the name of a step: see `--list`")?;
                options.only.push(step);
            }
            other => return Err(format!("`test` has no option `{other}`")),
        }
    }
    Ok(options)
}

fn parse_dist(mut args: impl Iterator<Item = String>) -> Result<DistOptions, String> {
    let mut options = DistOptions::default();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--no-npm" => options.no_npm = true,
            "--target" => {
                options.target = Some(args.next().ok_or("`--target` needs a machine, such as `aarch64`")?);
            }
            other => return Err(format!("`dist` has no option `{other}`")),
        }
    }
    Ok(options)
}

fn no_more(mut args: impl Iterator<Item = String>) -> Result<(), String> {
    match args.next() {
        Some(extra) => Err(format!("`{extra}` is one argument too many")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_read() {
        let options =
            TestOptions { all: true, only: vec!["tidy".into(), "doc".into()], ..TestOptions::default() };
        assert_eq!(parsed("test --all --only tidy --only doc"), Ok(Command::Test(options)));
        let options = TestOptions { only: vec!["tidy".into()], ..TestOptions::default() };
        assert_eq!(parsed("test -- --only tidy"), Ok(Command::Test(options)));
        let options = TestOptions { all: true, weekly: true, ..TestOptions::default() };
        assert_eq!(parsed("test --weekly"), Ok(Command::Test(options)), "it is all and more");
        assert_eq!(parsed("tidy"), Ok(Command::Tidy));
        assert_eq!(parsed("web"), Ok(Command::Web));
        assert_eq!(parsed("peers"), Ok(Command::Peers));
        assert_eq!(parsed(""), Ok(Command::Help));
    }

    #[test]
    fn mistakes_are_named() {
        assert!(parsed("test --al").unwrap_err().contains("--al"));
        assert!(parsed("test --only").unwrap_err().contains("--list"));
        assert!(parsed("tidy up").unwrap_err().contains("up"));
        assert!(parsed("tset").unwrap_err().contains("tset"));
    }
}
