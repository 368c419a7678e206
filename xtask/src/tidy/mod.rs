//! The rules of the house that no compiler knows. Each rule is a function from the checkout to violations.

mod circles;
mod code;
mod deps;
mod docs;
mod house;
mod lexer;
mod purity;
mod size;
mod source;
mod terms;

use std::path::Path;

use house::House;
pub(crate) use house::Violation;

/// All violations in the checkout at `root`, in the order of their places.
pub(crate) fn check(root: &Path) -> Vec<Violation> {
    let house = match House::read(root) {
        Ok(house) => house,
        Err(violation) => return vec![violation],
    };
    let rules = [
        deps::one_way,
        deps::pure_manifests,
        deps::inherited,
        purity::check,
        code::check,
        size::check,
        circles::check,
        terms::check,
        docs::dependencies,
        docs::links,
        docs::tests,
        docs::capabilities,
    ];
    let mut violations: Vec<Violation> = rules.iter().flat_map(|rule| rule(&house)).collect();
    violations.sort();
    violations.dedup();
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cargo test` keeps the house tidy without anyone asking for it.
    #[test]
    fn the_house_is_tidy() {
        let violations: Vec<String> =
            check(&crate::workspace_root()).iter().map(ToString::to_string).collect();
        assert!(violations.is_empty(), "{} violations:\n{}", violations.len(), violations.join("\n"));
    }

    /// The rules would find nothing in an empty list, too.
    #[test]
    fn the_rules_see_the_house() {
        let house = House::read(&crate::workspace_root()).unwrap();
        assert!(house.manifests.iter().any(|manifest| manifest.path == "crates/proto/Cargo.toml"));
        assert!(house.sources.iter().any(|source| source.path == "xtask/src/tidy/mod.rs"));
        assert!(house.documents.iter().any(|document| document.path == "STYLE.md"));
    }

    #[test]
    fn a_checkout_without_a_manifest_is_a_violation() {
        let violations = check(Path::new("/no/such/checkout"));
        assert_eq!(violations.len(), 1);
        assert!(violations[0].to_string().starts_with("Cargo.toml: [readable] cannot be read"));
    }
}
