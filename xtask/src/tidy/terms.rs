//! Writes to the table of live rooms. Two nodes may believe that a room is theirs, and the term of its row decides: a
//! statement that changes or deletes rows names the term that its writer knows. One statement enters rooms, and
//! replaces none.

use super::house::{House, Violation};
use super::lexer::Kind;
use super::source::Source;

/// The files of its statements. The first one has the statement that enters rooms.
const FILES: [&str; 3] = [
    "crates/services/src/store/cluster.rs",
    "crates/services/src/store/claims.rs",
    "crates/services/src/store/moves.rs",
];

/// Checks all code but tests.
pub(super) fn check(house: &House) -> Vec<Violation> {
    let sources = house.sources.iter().filter(|source| !source.path.starts_with("xtask/"));
    sources.flat_map(violations).collect()
}

fn violations(source: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut inserts = 0;
    for (line, statement) in statements(source) {
        let says = |words: &str| statement.contains(words);
        let message = if says("INSERT INTO live_rooms") {
            inserts += 1;
            let is_right = says("ON CONFLICT (code) DO NOTHING") && inserts == 1 && source.path == FILES[0];
            (!is_right).then_some("one statement enters live rooms, and leaves a row that is there as it is")
        } else if says("UPDATE live_rooms") || says("DELETE FROM live_rooms") {
            let condition = statement.split_once(" WHERE ").map_or("", |(_, condition)| condition);
            let is_right = names_term(condition);
            (!is_right).then_some("a statement that changes a live room's row has a condition on its term")
        } else {
            continue;
        };
        let message = if FILES.contains(&source.path.as_str()) {
            message
        } else {
            Some("this table is written by store/cluster.rs, store/claims.rs and store/moves.rs alone")
        };
        found.extend(message.map(|message| Violation::new(source.place(line), "terms", message)));
    }
    found
}

/// Whether a condition compares the term of a row: `term = …` or `(code, term) IN …`.
fn names_term(condition: &str) -> bool {
    let words: Vec<&str> = condition.split(|c: char| c.is_whitespace() || "(),.".contains(c)).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.windows(2).any(|pair| pair[0] == "term" && (pair[1] == "=" || pair[1] == "IN"))
}

/// The statements of SQL with their lines, each with single spaces: the texts of a `concat!` are one.
fn statements(source: &Source) -> Vec<(usize, String)> {
    let (mut all, mut at) = (Vec::new(), 0);
    while let Some(token) = source.tokens.get(at) {
        let is_concat = token.kind == Kind::Word
            && token.text == "concat"
            && source.text(at + 1) == "!"
            && source.text(at + 2) == "(";
        let end = if is_concat { closing(source, at + 2) } else { at };
        let texts =
            source.tokens[at..=end].iter().filter(|token| token.kind == Kind::Literal && !token.in_test);
        let text = texts.map(|token| token.text.as_str()).collect::<Vec<_>>().join(" ");
        let text = text.split_whitespace().filter(|word| *word != "\\").collect::<Vec<_>>().join(" ");
        if !text.is_empty() {
            all.push((token.line, text));
        }
        at = end + 1;
    }
    all
}

/// The place of the parenthesis that closes the one at `open`, or of the last token.
fn closing(source: &Source, open: usize) -> usize {
    let mut depth = 0_usize;
    for at in open..source.tokens.len() {
        match (source.tokens[at].kind, source.text(at)) {
            (Kind::Mark, "(") => depth += 1,
            (Kind::Mark, ")") => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    source.tokens.len() - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<String> {
        violations(&Source::new(path.to_owned(), text))
            .into_iter()
            .map(|violation| violation.message)
            .collect()
    }

    #[test]
    fn a_write_without_the_term_is_flagged() {
        let wrong = [
            r#"fn f() { sql.change("DELETE FROM live_rooms WHERE code = $1") }"#,
            r#"fn f() { sql.change("UPDATE live_rooms SET term = $1 WHERE node = $2") }"#,
            r#"fn f() { sql.change(concat!("UPDATE live_rooms r SET term = ", now!(), " WHERE r.code = $1")) }"#,
            r#"fn f() { sql.change("DELETE FROM live_rooms WHERE termination = $1") }"#,
            r#"fn f() { sql.change("INSERT INTO live_rooms VALUES ($1) ON CONFLICT (code) DO UPDATE SET node = $2") }"#,
        ];
        for text in wrong {
            assert_eq!(rules(FILES[0], text).len(), 1, "in: {text}");
        }
        let twice = r#"const A: &str = "INSERT INTO live_rooms VALUES ($1) ON CONFLICT (code) DO NOTHING";"#;
        assert_eq!(rules(FILES[0], &format!("{twice} {twice}")).len(), 1);
        assert_eq!(rules(FILES[1], twice).len(), 1, "rooms are entered in the first file");
    }

    #[test]
    fn a_write_with_the_term_is_not() {
        let right = [
            r#"fn f() { sql.change("DELETE FROM live_rooms r WHERE r.code = $1 AND r.term = $2") }"#,
            r#"fn f() { sql.change(concat!("DELETE FROM live_rooms WHERE (code, term) IN (SELECT ", x!(), ")")) }"#,
            r#"fn f() { sql.rows("SELECT code FROM live_rooms") }"#,
            r#"const A: &str = "INSERT INTO live_rooms VALUES ($1) ON CONFLICT (code) DO NOTHING";"#,
            "// DELETE FROM live_rooms\n",
            r#"#[test] fn f() { sql.change("DELETE FROM live_rooms") }"#,
        ];
        for text in right {
            assert_eq!(rules(FILES[0], text), Vec::<String>::new(), "in: {text}");
        }
        assert_eq!(rules("crates/server/src/lib.rs", right[0]).len(), 1, "elsewhere");
    }

    /// The rule would find nothing in a file without statements, too.
    #[test]
    fn the_rule_sees_the_statements() {
        let house = House::read(&crate::workspace_root()).unwrap();
        let writes = |text: &str| {
            ["INSERT INTO", "UPDATE", "DELETE FROM"]
                .iter()
                .any(|verb| text.contains(&format!("{verb} live_rooms")))
        };
        let counts = FILES.map(|file| {
            let source = house.sources.iter().find(|source| source.path == file).unwrap();
            statements(source).iter().filter(|(_, text)| writes(text)).count()
        });
        assert!(counts[0] >= 5 && counts[1] >= 1 && counts[2] >= 2, "{counts:?}");
    }
}
