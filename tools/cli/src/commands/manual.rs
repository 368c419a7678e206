//! `parlor completions` and `parlor man`: what a shell and `man` know of the command line, made from its definition.

use crate::args::{Cli, CompletionsArgs, ManArgs};
use anyhow::Context;
use clap::CommandFactory;
use parlor_terminal::print::say;
use std::fs;

/// Prints the completions of a shell.
///
/// # Errors
/// None.
pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "parlor", &mut script);
    say(String::from_utf8_lossy(&script).trim_end());
    Ok(())
}

/// Writes a page for each command.
///
/// # Errors
/// Why the folder could not be written.
pub(crate) fn pages(args: &ManArgs) -> anyhow::Result<()> {
    let folder = args.folder.display();
    fs::create_dir_all(&args.folder).with_context(|| format!("{folder} could not be made"))?;
    clap_mangen::generate_to(Cli::command(), &args.folder)
        .with_context(|| format!("pages could not be written into {folder}"))?;
    say(&format!("{folder} has the pages; to read one: man {folder}/parlor.1"));
    Ok(())
}
