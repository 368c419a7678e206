//! Excerpts of a failed program's output. The logs of long runs are often truncated, so the end of a run
//! repeats the excerpt.

use std::collections::VecDeque;

/// Lines kept of one program.
const LINES_MAX: usize = 120;
/// Lines kept of one block, so that the first failure leaves room for the next.
const BLOCK_MAX: usize = 40;
/// Lines kept of a program whose output has no block.
const TAIL_MAX: usize = 30;

/// Reads output line by line and keeps three kinds of blocks: a test program's text between `failures:` and
/// `test result: FAILED`, a compiler's `error` up to the next empty line, and a line with `FAILED` or
/// `panicked at`.
#[derive(Debug, Default)]
pub(crate) struct Excerpt {
    kept: Vec<String>,
    tail: VecDeque<String>,
    block: Option<(Block, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// Ends with the program's result.
    Failures,
    /// Ends with an empty line.
    Error,
}

impl Excerpt {
    /// Takes the next line, without its end.
    pub(crate) fn take(&mut self, line: &str) {
        if self.tail.len() == TAIL_MAX {
            self.tail.pop_front();
        }
        self.tail.push_back(line.to_owned());
        if self.block.is_none() {
            if line == "failures:" {
                self.block = Some((Block::Failures, 0));
            } else if line.starts_with("error") {
                self.block = Some((Block::Error, 0));
            } else if line.contains("FAILED") || line.contains("panicked at") {
                self.keep(line);
            }
        }
        let Some((block, lines)) = self.block else { return };
        if lines < BLOCK_MAX {
            self.keep(line);
        }
        let is_over = match block {
            Block::Failures => line.starts_with("test result:"),
            Block::Error => line.is_empty(),
        };
        self.block = (!is_over).then_some((block, lines + 1));
    }

    fn keep(&mut self, line: &str) {
        if self.kept.len() < LINES_MAX {
            self.kept.push(line.to_owned());
        }
    }

    /// The blocks, or the last lines without any.
    pub(crate) fn into_lines(self) -> Vec<String> {
        if self.kept.is_empty() { self.tail.into() } else { self.kept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(output: &str) -> Vec<String> {
        let mut excerpt = Excerpt::default();
        output.lines().for_each(|line| excerpt.take(line));
        excerpt.into_lines()
    }

    #[test]
    fn failures_of_tests_are_kept_and_passes_are_not() {
        let output = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nno\n\n\
                      failures:\n    b\n\ntest result: FAILED. 1 passed\n\nrunning 1 test\ntest c ... ok";
        let kept = of(output);
        assert_eq!(kept.first().map(String::as_str), Some("test b ... FAILED"));
        assert!(kept.iter().any(|line| line == "no"), "{kept:?}");
        assert!(!kept.iter().any(|line| line.contains("test a") || line.contains("test c")), "{kept:?}");
    }

    #[test]
    fn a_compilers_errors_are_kept() {
        let kept = of("   Compiling a\nerror[E0425]: no `b`\n --> a.rs:1:1\n\n   Compiling c");
        assert_eq!(kept, ["error[E0425]: no `b`", " --> a.rs:1:1", ""]);
    }

    #[test]
    fn a_long_block_leaves_room_for_the_next() {
        let long = format!("failures:\n{}test result: FAILED\nerror: two\n", "line\n".repeat(500));
        let kept = of(&long);
        assert_eq!(kept.len(), BLOCK_MAX + 1);
        assert_eq!(kept.last().map(String::as_str), Some("error: two"));
    }

    #[test]
    fn output_without_blocks_shows_its_end() {
        let kept = of(&(0..100).map(|n| format!("{n}\n")).collect::<String>());
        assert_eq!(kept.len(), TAIL_MAX);
        assert_eq!(kept.last().map(String::as_str), Some("99"));
    }
}
