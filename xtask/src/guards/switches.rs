//! Sources in which guards can be taken out while a program runs: one build serves many guards.
//!
//! The body of a function with guards is written once with all of them and once without each, and a variable of the
//! environment chooses. This is a mutant schema: Untch, Offutt, Harrold, "Mutation analysis using mutant schemata",
//! 1993.

use std::collections::BTreeMap;
use std::ops::Range;

use syn::visit::Visit;

/// The variable of the environment that names the guard to take out, by its number.
pub(super) const VARIABLE: &str = "PARLOR_GUARD_OUT";

/// What a crate's `lib.rs` gets: the number of the guard that is out.
pub(super) const HELPER: &str = r#"
pub(crate) fn guard_out() -> u32 {
    static OUT: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *OUT.get_or_init(|| std::env::var("PARLOR_GUARD_OUT").ok().and_then(|it| it.parse().ok()).unwrap_or(u32::MAX))
}
"#;

/// Where a text stands in a source, and what replaces it when guard `number` is out.
#[derive(Clone, Debug)]
pub(super) struct Removal {
    pub(super) number: usize,
    pub(super) at: Range<usize>,
    pub(super) replace: String,
}

/// The source with a switch for each removal, and the numbers of those that can have none: they stand outside of
/// functions, or in one that must be known to the compiler alone (`const`) or returns an opaque type.
///
/// # Errors
///
/// The source is no Rust.
pub(super) fn switched(source: &str, removals: &[Removal]) -> Result<(String, Vec<usize>), syn::Error> {
    let mut bodies = Bodies::default();
    bodies.visit_file(&syn::parse_file(source)?);
    let mut by_body: BTreeMap<(usize, usize), Vec<&Removal>> = BTreeMap::new();
    let mut without = Vec::new();
    for removal in removals {
        match bodies.0.iter().find(|body| body.start < removal.at.start && removal.at.end < body.end) {
            Some(body) => by_body.entry((body.start, body.end)).or_default().push(removal),
            None => without.push(removal.number),
        }
    }
    let mut text = source.to_owned();
    // From the end, so that what is not yet replaced keeps its place.
    for ((start, end), removals) in by_body.into_iter().rev() {
        text.replace_range(start..end, &switch(&source[start..end], start, &removals));
    }
    Ok((text, without))
}

/// A function's body, which starts at `start` in its source, with a copy for each removal.
fn switch(body: &str, start: usize, removals: &[&Removal]) -> String {
    let arms = removals.iter().map(|removal| {
        let mut copy = body.to_owned();
        copy.replace_range(removal.at.start - start..removal.at.end - start, &removal.replace);
        format!("{} => {copy}\n", removal.number)
    });
    format!("{{ match crate::guard_out() {{\n{}_ => {body}\n}} }}", arms.collect::<String>())
}

/// Where the bodies of functions stand. Functions within functions belong to the outer one.
#[derive(Default)]
struct Bodies(Vec<Range<usize>>);

impl Bodies {
    fn note(&mut self, signature: &syn::Signature, body: &syn::Block) {
        if signature.constness.is_none() && !returns_opaque(signature) {
            self.0.push(body.brace_token.span.join().byte_range());
        }
    }
}

fn returns_opaque(signature: &syn::Signature) -> bool {
    struct Opaque(bool);
    impl Visit<'_> for Opaque {
        fn visit_type_impl_trait(&mut self, _: &syn::TypeImplTrait) {
            self.0 = true;
        }
    }
    let mut opaque = Opaque(false);
    opaque.visit_return_type(&signature.output);
    opaque.0
}

impl<'ast> Visit<'ast> for Bodies {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.note(&function.sig, &function.block);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.note(&function.sig, &function.block);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.note(&function.sig, body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removal(source: &str, number: usize, find: &str, replace: &str) -> Removal {
        let at = source.find(find).unwrap();
        Removal { number, at: at..at + find.len(), replace: replace.to_owned() }
    }

    #[test]
    fn each_guard_of_a_function_has_an_arm() {
        let source = "fn f(a: u8) -> u8 { if a > 1 { 1 } else if a > 0 { 2 } else { 3 } }\nfn g() {}\n";
        let removals = [removal(source, 4, "a > 1", "false"), removal(source, 9, "a > 0", "true")];
        let (text, without) = switched(source, &removals).unwrap();
        assert!(without.is_empty());
        assert_eq!(
            text,
            "fn f(a: u8) -> u8 { match crate::guard_out() {\n\
             4 => { if false { 1 } else if a > 0 { 2 } else { 3 } }\n\
             9 => { if a > 1 { 1 } else if true { 2 } else { 3 } }\n\
             _ => { if a > 1 { 1 } else if a > 0 { 2 } else { 3 } }\n\
             } }\nfn g() {}\n"
        );
    }

    #[test]
    fn what_no_running_program_can_change_has_no_switch() {
        let source = "const A: u8 = 1;\nconst fn b() -> u8 { 2 }\nfn c() -> impl Fn() { || drop(3) }\nimpl D { fn d() { 4; } }\n";
        let removals: Vec<Removal> = (1..=4).map(|it| removal(source, it, &format!("{it}"), "0")).collect();
        let (text, without) = switched(source, &removals).unwrap();
        assert_eq!(without, [1, 2, 3]);
        assert!(text.contains("4 => { 0; }") && !text.contains("1 =>"), "{text}");
    }

    #[test]
    fn letters_of_several_bytes_move_nothing() {
        let source = "// ä — ö\nfn f() -> bool { let _ = \"ü\"; true }\n";
        let (text, _) = switched(source, &[removal(source, 0, "true", "false")]).unwrap();
        assert!(text.contains("0 => { let _ = \"ü\"; false }"), "{text}");
    }

    #[test]
    fn the_helper_reads_the_variable() {
        assert!(HELPER.contains(&format!("{VARIABLE:?}")));
    }
}
