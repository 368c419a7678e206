//! What is wrong with a definition.

use crate::board::Writers;
use crate::limits::TITLE_BYTES_MAX;
use thiserror::Error;

/// Why a definition is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: {sentence}")]
pub struct BadDefinition {
    /// The wrong field.
    pub field: &'static str,
    /// What is wrong with it.
    pub sentence: String,
}

impl BadDefinition {
    pub(crate) fn new(field: &'static str, sentence: impl Into<String>) -> Self {
        BadDefinition { field, sentence: sentence.into() }
    }

    pub(crate) fn text(field: &'static str, text: &str, most: usize) -> Result<(), Self> {
        if text.len() > most {
            let sentence = format!("it has {} bytes, and {most} are the most", text.len());
            return Err(Self::new(field, sentence));
        }
        Ok(())
    }

    /// Rules write boards alone.
    pub(crate) fn not_by_rules(writers: Writers) -> Result<(), Self> {
        if writers == Writers::Rules {
            return Err(Self::new("writers", "players or server: the rules of games write boards alone"));
        }
        Ok(())
    }

    pub(crate) fn title(title: &str) -> Result<(), Self> {
        Self::text("title", title, TITLE_BYTES_MAX)
    }
}
