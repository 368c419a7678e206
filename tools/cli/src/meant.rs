//! The command line, with a hint for mistyped commands.

use crate::args::Cli;
use clap::Parser;
use clap::error::{ContextKind, ContextValue};

/// What people type who mean a command of another name: the letters alone lead elsewhere.
const MEANT: [(&str, &str); 11] = [
    ("host", "play"),
    ("join", "play"),
    ("create", "play"),
    ("new", "play"),
    ("start", "serve"),
    ("run", "serve"),
    ("server", "serve"),
    ("check", "doctor"),
    ("health", "doctor"),
    ("list", "rooms"),
    ("bot", "bots"),
];

/// Reads the command line, or ends the process with what is wrong with it.
pub(crate) fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|mut error| {
        if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand)
            && let Some((_, meant)) = MEANT.iter().find(|(word, _)| word == typed)
        {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![(*meant).to_owned()]));
        }
        error.exit()
    })
}
