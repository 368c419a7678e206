//! File size: a file is one concept, and a file over 600 lines needs a second look. (Functions over 70 lines
//! are clippy's: `too-many-lines-threshold` in clippy.toml.)

use super::house::{House, Violation, table};

const RULE: &str = "size";
const LINES_MAX: usize = 600;
const ALLOW_FILE: &str = "xtask/tidy-allow.toml";

/// Compares all lengths with the limit and with the list of exceptions.
pub(super) fn check(house: &House) -> Vec<Violation> {
    match table(&house.root, ALLOW_FILE) {
        Ok(allowed) => violations(&house.lengths, &allowed),
        Err(violation) => vec![violation],
    }
}

fn violations(lengths: &[(String, usize)], allowed: &toml::Table) -> Vec<Violation> {
    let too_long = || lengths.iter().filter(|(_, lines)| *lines > LINES_MAX);
    let not_allowed = too_long().filter(|(path, _)| !allowed.contains_key(path)).map(|(path, lines)| {
        let message = format!(
            "{lines} lines, over {LINES_MAX}: split it by concept, or give the reason in {ALLOW_FILE}"
        );
        Violation::new(path, RULE, message)
    });
    let not_needed = allowed.keys().filter(|path| too_long().all(|(long, _)| long != *path)).map(|path| {
        let message = format!("the entry for {path} is not needed: remove it");
        Violation::new(ALLOW_FILE, RULE, message)
    });
    let without_reason = allowed.iter().filter(|(_, reason)| !is_reason(reason)).map(|(path, _)| {
        let message = format!("the entry for {path} gives no reason: \"{path}\" = \"why it is one file\"");
        Violation::new(ALLOW_FILE, RULE, message)
    });
    not_allowed.chain(not_needed).chain(without_reason).collect()
}

fn is_reason(value: &toml::Value) -> bool {
    value.as_str().is_some_and(|reason| !reason.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(lengths: &[(&str, usize)], allowed: &str) -> Vec<String> {
        let lengths: Vec<_> = lengths.iter().map(|(path, lines)| ((*path).to_owned(), *lines)).collect();
        violations(&lengths, &allowed.parse().unwrap()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_long_file_needs_a_reason() {
        assert!(messages(&[("a.rs", 601)], "")[0].starts_with("a.rs: [size] 601 lines"));
        assert!(messages(&[("a.rs", 601)], "\"a.rs\" = \" \"")[0].contains("gives no reason"));
        assert_eq!(
            messages(&[("a.rs", 601), ("b.rs", 600)], "\"a.rs\" = \"one table\""),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_reason_needs_a_long_file() {
        let allowed = "\"a.rs\" = \"one table\"";
        assert!(messages(&[("a.rs", 600)], allowed)[0].contains("not needed"));
        assert!(messages(&[], allowed)[0].contains("not needed"));
    }
}
