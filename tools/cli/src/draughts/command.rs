//! A player's typed commands.

/// What can be typed.
pub(crate) const HELP: &str = "11-15 or 22x15x8 moves; moves lists what can be moved, board shows it, resign gives up, \
                               quit goes away and leaves the game as it is";

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Move along these squares.
    Move(Vec<u8>),
    /// Say what can be moved.
    Moves,
    /// Show the board.
    Board,
    /// Give the game up.
    Resign,
    /// Go away; the game stays.
    Quit,
    /// Nothing was typed.
    Nothing,
    /// An unknown command.
    Unknown,
}

impl Command {
    /// Reads a line.
    pub(crate) fn read(line: &str) -> Self {
        let line = line.trim().to_lowercase();
        match line.as_str() {
            "" => Command::Nothing,
            "moves" => Command::Moves,
            "board" => Command::Board,
            "resign" => Command::Resign,
            "quit" | "q" | "exit" => Command::Quit,
            line => path(line).map_or(Command::Unknown, Command::Move),
        }
    }
}

/// Squares with something between them: `11-15`, `22x15x8`, `11 15`.
fn path(line: &str) -> Option<Vec<u8>> {
    let squares = line.split(['-', 'x', ' ', ',']).filter(|part| !part.is_empty());
    let squares: Vec<u8> = squares.map(|part| part.parse().ok()).collect::<Option<_>>()?;
    (squares.len() >= 2).then_some(squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_written_as_players_do() {
        for (line, squares) in
            [("11-15", vec![11, 15]), (" 22X15x8 ", vec![22, 15, 8]), ("11 15", vec![11, 15])]
        {
            assert_eq!(Command::read(line), Command::Move(squares));
        }
        for line in ["11", "11-", "a-b", "11-300", "hello", "-1-5x"] {
            assert!(!matches!(Command::read(line), Command::Move(squares) if squares.len() < 2), "{line}");
        }
        assert_eq!(Command::read("Resign"), Command::Resign);
        assert_eq!(Command::read("  "), Command::Nothing);
        assert_eq!(Command::read("eleven"), Command::Unknown);
    }
}
