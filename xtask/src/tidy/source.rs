//! Rust source as the rules see it: its tokens, which of them are tests, and the paths they name.
//!
//! This is not a parser. It knows as much of the language as the rules need. It is wrong only in code that
//! does not occur by accident (a `HashMap` behind three macros); review finds that.

use std::collections::{BTreeMap, BTreeSet};

use super::lexer::{self, Kind, Token};

/// A source file.
pub(crate) struct Source {
    /// From the workspace's root.
    pub(crate) path: String,
    pub(crate) tokens: Vec<Token>,
    /// Files that are tests because this one declares `#[cfg(test)] mod name;`.
    test_modules: Vec<String>,
}

/// A path that code names, with the file's imports applied: after `use std::time;`, `time::Instant` is
/// `std::time::Instant`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamedPath {
    pub(crate) segments: Vec<String>,
    pub(crate) line: usize,
    pub(crate) in_test: bool,
    pub(crate) origin: Origin,
}

/// Where a path stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// In a `use`; a glob import ends in `*`.
    Import,
    /// In other code. `end` is the index of the first token after it; `import` is what its first segment
    /// stands for, where a `use` shortened it.
    Code { end: usize, import: Option<Vec<String>> },
}

impl Source {
    /// Reads `text`; `path` decides whether all of it is a test.
    pub(crate) fn new(path: String, text: &str) -> Source {
        let mut tokens = lexer::tokens(text);
        let test_modules = mark_tests(&path, &mut tokens);
        let mut source = Source { path, tokens, test_modules };
        if is_test_path(&source.path) {
            source.mark_all();
        }
        source
    }

    /// The path and the line, as editors and terminals understand them.
    pub(crate) fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.path)
    }

    /// All paths the file names, imports first.
    pub(crate) fn paths(&self) -> Vec<NamedPath> {
        let imports = self.imports();
        let names = Names::new(&imports);
        let imported = imports.iter().map(|import| NamedPath {
            segments: resolve(&import.segments, names.seen_by(import.in_test)),
            line: import.line,
            in_test: import.in_test,
            origin: Origin::Import,
        });
        imported.chain(self.code_paths(&names)).collect()
    }

    /// Whether it has a function of this name.
    pub(crate) fn has_function(&self, name: &str) -> bool {
        self.tokens.windows(2).any(|pair| pair[0].text == "fn" && pair[1].text == name)
    }

    /// The token at `index`, as text; empty behind the end.
    pub(crate) fn text(&self, index: usize) -> &str {
        self.tokens.get(index).map_or("", |token| token.text.as_str())
    }

    fn is_mark(&self, index: usize, mark: &str) -> bool {
        is_mark(&self.tokens, index, mark)
    }

    fn is_word(&self, index: usize) -> bool {
        self.tokens.get(index).is_some_and(|token| token.kind == Kind::Word)
    }

    fn mark_all(&mut self) {
        self.tokens.iter_mut().for_each(|token| token.in_test = true);
    }

    /// What it imports, as written.
    pub(crate) fn imports(&self) -> Vec<Import> {
        let mut imports = Vec::new();
        for index in self.use_starts() {
            let skip = usize::from(self.is_mark(index + 1, "::"));
            let before = imports.len();
            self.use_tree(index + 1 + skip, &[], &mut imports);
            let is_export = index > 0 && (self.text(index - 1) == "pub" || self.is_mark(index - 1, ")"));
            imports[before..].iter_mut().for_each(|import| import.is_export = is_export);
        }
        imports
    }

    /// Whether all of it is a test.
    pub(crate) fn is_test(&self) -> bool {
        self.tokens.iter().all(|token| token.in_test)
    }

    /// Indices of the words that begin an import: `use`, and `extern crate`, which names a crate as well.
    fn use_starts(&self) -> Vec<usize> {
        let starts = |index: usize| match self.text(index) {
            // `impl Trait + use<'a>` captures lifetimes and imports nothing.
            "use" => self.is_word(index) && !self.is_mark(index + 1, "<"),
            "crate" => index > 0 && self.text(index - 1) == "extern" && self.is_word(index + 1),
            _ => false,
        };
        (0..self.tokens.len()).filter(|&index| starts(index)).collect()
    }

    /// Reads one tree of a `use` and returns the index behind it.
    fn use_tree(&self, mut index: usize, prefix: &[String], imports: &mut Vec<Import>) -> usize {
        let mut segments = prefix.to_vec();
        let line = self.tokens.get(index).map_or(0, |token| token.line);
        loop {
            if self.is_mark(index, "{") {
                index += 1;
                while index < self.tokens.len() && !self.is_mark(index, "}") {
                    index = self.use_tree(index, &segments, imports);
                    index += usize::from(self.is_mark(index, ","));
                }
                return index + 1;
            }
            if index >= self.tokens.len() || !(self.is_word(index) || self.is_mark(index, "*")) {
                // Not a tree: step over it, so that the caller always gets on.
                return index + 1;
            }
            segments.push(self.text(index).to_owned());
            index += 1;
            if !self.is_mark(index, "::") {
                break;
            }
            index += 1;
        }
        if segments.len() > 1 && segments.last().is_some_and(|last| last == "self") {
            segments.pop();
        }
        let mut name = segments.last().cloned().unwrap_or_default();
        if self.text(index) == "as" {
            name = self.text(index + 1).to_owned();
            index += 2;
        }
        let in_test = self.tokens.get(index - 1).is_some_and(|token| token.in_test);
        imports.push(Import { name, segments, line, in_test, is_export: false });
        index
    }

    fn code_paths(&self, names: &Names<'_>) -> Vec<NamedPath> {
        let mut paths = Vec::new();
        let mut index = 0;
        while index < self.tokens.len() {
            if self.text(index) == "use" && self.is_word(index) && !self.is_mark(index + 1, "<") {
                index = self.behind_use(index);
                continue;
            }
            if !self.starts_path(index) {
                index += 1;
                continue;
            }
            let token = &self.tokens[index];
            let end = self.path_end(index);
            let written: Vec<String> =
                (index..end).step_by(2).map(|segment| self.text(segment).to_owned()).collect();
            let names = names.seen_by(token.in_test);
            let import = names.contains_key(written[0].as_str()).then(|| resolve(&written[..1], names));
            paths.push(NamedPath {
                segments: resolve(&written, names),
                line: token.line,
                in_test: token.in_test,
                origin: Origin::Code { end, import },
            });
            index = end;
        }
        paths
    }

    fn behind_use(&self, start: usize) -> usize {
        let semicolon = (start..self.tokens.len()).find(|&index| self.is_mark(index, ";"));
        semicolon.unwrap_or(self.tokens.len())
    }

    /// Whether a path starts at the word `index`; the names of fields and methods are none.
    fn starts_path(&self, index: usize) -> bool {
        if !self.is_word(index) || (index > 0 && self.is_mark(index - 1, ".")) {
            return false;
        }
        let continues = index > 1
            && self.is_mark(index - 1, "::")
            && (self.is_word(index - 2) || self.ends_generics(index - 2));
        !continues
    }

    /// Whether the mark at `index` is a `>` and no arrow's head.
    fn ends_generics(&self, index: usize) -> bool {
        self.is_mark(index, ">") && !(index > 0 && self.is_mark(index - 1, "-"))
    }

    fn path_end(&self, start: usize) -> usize {
        let mut end = start + 1;
        while self.is_mark(end, "::") && self.is_word(end + 1) {
            end += 2;
        }
        end
    }
}

/// Marks the files that another file declares as test modules.
pub(crate) fn mark_test_files(sources: &mut [Source]) {
    let tests: BTreeSet<String> = sources.iter().flat_map(|source| source.test_modules.clone()).collect();
    for source in sources {
        let inside = |module: &String| {
            let directory = module.strip_suffix("/mod.rs").or_else(|| module.strip_suffix(".rs"));
            source.path == *module
                || directory.is_some_and(|directory| source.path.starts_with(&format!("{directory}/")))
        };
        if tests.iter().any(inside) {
            source.mark_all();
        }
    }
}

/// Integration tests and benchmarks stand beside `src`; test code below `src` is marked as such. The crates
/// in the folder `tests` at the root are tools, whose own tests stand in the same places.
fn is_test_path(path: &str) -> bool {
    let is_test = |part: &str| part == "tests" || part == "benches";
    path.split('/').skip(1).take_while(|part| *part != "src").any(is_test)
}

/// One name that a `use` brings.
pub(crate) struct Import {
    pub(crate) name: String,
    pub(crate) segments: Vec<String>,
    line: usize,
    pub(crate) in_test: bool,
    /// Whether it hands the name on: `pub use`, `pub(crate) use`.
    pub(crate) is_export: bool,
}

/// What the names that a file imports stand for.
type Targets<'a> = BTreeMap<&'a str, &'a [String]>;

/// A test module may import another `Instant` than the code above it.
struct Names<'a> {
    outside_tests: Targets<'a>,
    in_tests: Targets<'a>,
}

impl<'a> Names<'a> {
    fn new(imports: &'a [Import]) -> Names<'a> {
        let target = |import: &'a Import| (import.name.as_str(), import.segments.as_slice());
        let (tests, others): (Vec<&Import>, Vec<&Import>) = imports.iter().partition(|import| import.in_test);
        let outside_tests: Targets<'a> = others.into_iter().map(target).collect();
        let in_tests = outside_tests.clone().into_iter().chain(tests.into_iter().map(target)).collect();
        Names { outside_tests, in_tests }
    }

    fn seen_by(&self, in_test: bool) -> &Targets<'a> {
        if in_test { &self.in_tests } else { &self.outside_tests }
    }
}

/// Applies imports to the first segment, also where an import builds on another one.
fn resolve(segments: &[String], names: &Targets<'_>) -> Vec<String> {
    let mut resolved = segments.to_vec();
    // No chain of imports is longer, and `use rand::rand` would never end.
    for _ in 0..4 {
        let Some(target) = names.get(resolved[0].as_str()) else { break };
        if target[0] == resolved[0] || **target == resolved {
            break;
        }
        resolved = target.iter().cloned().chain(resolved.drain(1..)).collect();
    }
    resolved
}

/// Marks what is compiled for tests alone, and returns the files of test modules that stand elsewhere.
fn mark_tests(path: &str, tokens: &mut [Token]) -> Vec<String> {
    let mut modules = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        let inner = is_mark(tokens, index + 1, "!");
        let open = index + 1 + usize::from(inner);
        if !(is_mark(tokens, index, "#") && is_mark(tokens, open, "[")) {
            index += 1;
            continue;
        }
        let close = closing(tokens, open);
        if close == tokens.len() || !is_test_attribute(&tokens[open + 1..close]) {
            index = close + 1;
            continue;
        }
        let end = if inner { tokens.len() } else { item_end(tokens, close + 1) };
        modules.extend(module_file(path, &tokens[close + 1..end]));
        tokens[index..end].iter_mut().for_each(|token| token.in_test = true);
        index = end.max(index + 1);
    }
    modules
}

/// `cfg(test)` and whatever implies it, `test`, `tokio::test(…)`.
fn is_test_attribute(attribute: &[Token]) -> bool {
    if attribute.first().is_some_and(|token| token.text == "cfg") {
        return attribute.get(2..attribute.len() - 1).is_some_and(implies_test);
    }
    let name = attribute.iter().take_while(|token| token.text != "(" && token.text != "=").last();
    name.is_some_and(|token| token.text == "test")
}

/// Whether a `cfg` predicate holds for tests alone.
fn implies_test(predicate: &[Token]) -> bool {
    match predicate {
        [word] => word.text == "test",
        [word, open, inside @ .., _] if open.text == "(" => {
            let mut arguments = split_at_commas(inside).into_iter().filter(|argument| !argument.is_empty());
            match word.text.as_str() {
                "all" => arguments.any(implies_test),
                "any" => arguments.all(implies_test),
                _ => false,
            }
        }
        _ => false,
    }
}

fn split_at_commas(tokens: &[Token]) -> Vec<&[Token]> {
    let mut depth = 0_usize;
    tokens
        .split(|token| {
            match token.text.as_str() {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && token.text == ","
        })
        .collect()
}

/// The index behind the item that starts at `start`, its other attributes included.
fn item_end(tokens: &[Token], start: usize) -> usize {
    let mut index = start;
    while is_mark(tokens, index, "#") && is_mark(tokens, index + 1, "[") {
        index = closing(tokens, index + 1) + 1;
    }
    // A field, a variant or an argument ends at its comma; an item may have commas before its body.
    const ITEMS: [&str; 14] = [
        "pub", "fn", "mod", "use", "struct", "enum", "impl", "trait", "const", "static", "type", "async",
        "extern", "unsafe",
    ];
    let is_item = tokens.get(index).is_some_and(|token| ITEMS.contains(&token.text.as_str()));
    while index < tokens.len() {
        match tokens[index].text.as_str() {
            _ if tokens[index].kind != Kind::Mark => {}
            ";" => return index + 1,
            "{" => return (closing(tokens, index) + 1).min(tokens.len()),
            "(" | "[" => index = closing(tokens, index),
            "," if !is_item => return index + 1,
            "}" | ")" | "]" => return index,
            _ => {}
        }
        index += 1;
    }
    tokens.len()
}

/// The index of the bracket that closes the one at `open`; the end, if none does.
fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            _ if token.kind != Kind::Mark => {}
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index;
        }
    }
    tokens.len()
}

/// The file of a module that is declared as `mod name;` by `item`, which stands in the file `path`.
fn module_file(path: &str, item: &[Token]) -> Vec<String> {
    let Some(name) = declared_module(item) else { return Vec::new() };
    let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
    let named = item.windows(3).find(|window| window[0].text == "path" && window[1].text == "=");
    if let Some(window) = named {
        return vec![format!("{directory}/{}", window[2].text)];
    }
    let base = match file {
        "lib.rs" | "main.rs" | "mod.rs" => directory.to_owned(),
        _ => path.trim_end_matches(".rs").to_owned(),
    };
    vec![format!("{base}/{name}.rs"), format!("{base}/{name}/mod.rs")]
}

fn declared_module(item: &[Token]) -> Option<&str> {
    let [.., keyword, name, end] = item else { return None };
    (keyword.text == "mod" && end.text == ";").then_some(name.text.as_str())
}

fn is_mark(tokens: &[Token], index: usize, mark: &str) -> bool {
    tokens.get(index).is_some_and(|token| token.kind == Kind::Mark && token.text == mark)
}

#[cfg(test)]
mod tests;
