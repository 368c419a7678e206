//! A program with its arguments and environment.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program to run. Its `Display` can be pasted into a shell.
#[derive(Debug)]
pub(crate) struct Invocation {
    program: String,
    args: Vec<String>,
    env: Vec<(&'static str, String)>,
}

impl Invocation {
    /// `program` with no arguments yet.
    pub(crate) fn new(program: &str) -> Invocation {
        Invocation { program: program.to_owned(), args: Vec::new(), env: Vec::new() }
    }

    /// Cargo with `args`, which are split at spaces.
    pub(crate) fn cargo(args: &str) -> Invocation {
        Invocation::new("cargo").args(args)
    }

    pub(crate) fn parse(line: &str) -> Invocation {
        let (program, args) = line.split_once(' ').unwrap_or((line, ""));
        Invocation::new(program).args(args)
    }

    /// Adds `args`, which are split at spaces.
    pub(crate) fn args(mut self, args: &str) -> Invocation {
        self.args.extend(args.split_whitespace().map(str::to_owned));
        self
    }

    /// Sets a variable of the program's environment.
    pub(crate) fn env(mut self, name: &'static str, value: &str) -> Invocation {
        self.env.push((name, value.to_owned()));
        self
    }

    /// The command, ready to spawn. It has no stdin, so no program can wait for input.
    pub(crate) fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).current_dir(folder).stdin(Stdio::null());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn succeeds_quietly(&self) -> bool {
        let mut command = self.command(Path::new("."));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.env {
            write!(f, "{name}={} ", quoted(value))?;
        }
        write!(f, "{}", quoted(&self.program))?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let doc = Invocation::cargo("doc --no-deps").env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(doc.to_string(), "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps");
    }
}
