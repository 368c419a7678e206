//! Rust text cut into tokens. Comments are left out, and what stands in strings is no code.

/// A word, a literal or a punctuation mark.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// A literal's text is its content, without quotes.
    pub(crate) text: String,
    /// The first line is 1.
    pub(crate) line: usize,
    /// Compiled for tests alone.
    pub(crate) in_test: bool,
}

/// What a token is. `::` is one mark; all others are single characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Word,
    Literal,
    Mark,
}

/// The tokens of a Rust text.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    Lexer::new(text).run()
}

/// Cuts text into tokens.
struct Lexer {
    chars: Vec<char>,
    at: usize,
    line: usize,
    tokens: Vec<Token>,
}

impl Lexer {
    fn new(text: &str) -> Lexer {
        Lexer { chars: text.chars().collect(), at: 0, line: 1, tokens: Vec::new() }
    }

    fn run(mut self) -> Vec<Token> {
        while let Some(c) = self.peek(0) {
            match c {
                '/' if self.peek(1) == Some('/') => self.skip_while(|c| c != '\n'),
                '/' if self.peek(1) == Some('*') => self.skip_block_comment(),
                '"' => self.string(),
                '\'' => self.quote(),
                _ if c.is_whitespace() => self.skip_while(char::is_whitespace),
                _ if c.is_alphanumeric() || c == '_' => self.word(),
                ':' if self.peek(1) == Some(':') => self.mark("::"),
                _ => self.mark(c.encode_utf8(&mut [0; 4])),
            }
        }
        self.tokens
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        self.line += usize::from(c == '\n');
        Some(c)
    }

    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        while self.peek(0).is_some_and(&wanted) {
            self.bump();
        }
    }

    fn push(&mut self, kind: Kind, text: String, line: usize) {
        self.tokens.push(Token { kind, text, line, in_test: false });
    }

    fn mark(&mut self, mark: &str) {
        self.push(Kind::Mark, mark.to_owned(), self.line);
        mark.chars().for_each(|_| {
            self.bump();
        });
    }

    /// Block comments nest.
    fn skip_block_comment(&mut self) {
        let mut depth = 0;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => depth += 1,
                (Some('*'), Some('/')) => depth -= 1,
                (None, _) => return,
                _ => {
                    self.bump();
                    continue;
                }
            }
            self.bump();
            self.bump();
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        let line = self.line;
        self.bump();
        let mut text = String::new();
        while let Some(c) = self.bump() {
            match c {
                '"' => break,
                '\\' => {
                    self.bump();
                }
                _ => text.push(c),
            }
        }
        self.push(Kind::Literal, text, line);
    }

    /// A string that starts at its `#`s or its quote; a backslash means nothing in it.
    fn raw_string(&mut self) {
        let line = self.line;
        let start = self.at;
        self.skip_while(|c| c == '#');
        let hashes = self.at - start;
        self.bump();
        let mut text = String::new();
        while let Some(c) = self.bump() {
            if c == '"' && (0..hashes).all(|ahead| self.peek(ahead) == Some('#')) {
                self.at += hashes;
                break;
            }
            text.push(c);
        }
        self.push(Kind::Literal, text, line);
    }

    /// A character, or a lifetime, which no rule wants to see.
    fn quote(&mut self) {
        let line = self.line;
        self.bump();
        if self.peek(0) == Some('\\') {
            self.bump();
            self.bump();
            self.skip_while(|c| c != '\'');
            self.bump();
            self.push(Kind::Literal, String::new(), line);
        } else if self.peek(1) == Some('\'') {
            self.bump();
            self.bump();
            self.push(Kind::Literal, String::new(), line);
        } else {
            self.skip_while(|c| c.is_alphanumeric() || c == '_');
        }
    }

    /// An identifier, a keyword, a number, or the prefix of a string.
    fn word(&mut self) {
        let start = self.at;
        let line = self.line;
        self.skip_while(|c| c.is_alphanumeric() || c == '_');
        let word: String = self.chars[start..self.at].iter().collect();
        let raw = matches!(word.as_str(), "r" | "br" | "cr");
        match self.peek(0) {
            Some('"') if raw => self.raw_string(),
            Some('#') if raw && matches!(self.peek(1), Some('#' | '"')) => self.raw_string(),
            // `r#async` is a name, not the keyword.
            Some('#') if word == "r" && self.peek(1).is_some_and(char::is_alphabetic) => {
                self.bump();
                let start = self.at;
                self.skip_while(|c| c.is_alphanumeric() || c == '_');
                let name: String = self.chars[start..self.at].iter().collect();
                self.push(Kind::Word, format!("r#{name}"), line);
            }
            Some('"') if matches!(word.as_str(), "b" | "c") => self.string(),
            Some('\'') if word == "b" => self.quote(),
            _ => {
                let kind =
                    if word.starts_with(|c: char| c.is_ascii_digit()) { Kind::Literal } else { Kind::Word };
                self.push(kind, word, line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        tokens(text).into_iter().filter(|token| token.kind == Kind::Word).map(|token| token.text).collect()
    }

    #[test]
    fn comments_and_strings_hold_no_words() {
        assert_eq!(words("a // b\n/* c /* d */ e */ f"), ["a", "f"]);
        assert_eq!(words(r##"a "b \" c" d r#"e " f"# g b"h" br"\" i"##), ["a", "d", "g", "i"]);
        assert_eq!(words("/// a\n//! b\nc"), ["c"]);
    }

    #[test]
    fn characters_are_not_lifetimes() {
        assert_eq!(
            words(r"fn f<'a>(x: &'a u8) { '\''; 'q'; b'z'; '\u{1F600}'; g }"),
            ["fn", "f", "x", "u8", "g"]
        );
    }

    #[test]
    fn raw_names_are_not_keywords() {
        assert_eq!(words("r#async"), ["r#async"]);
    }

    #[test]
    fn lines_are_counted_through_strings_and_comments() {
        let found = tokens("\"a\nb\" /* c\n */\nd");
        assert_eq!(found.last().map(|token| token.line), Some(4));
    }
}
