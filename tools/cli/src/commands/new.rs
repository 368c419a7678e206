//! `parlor new`: a folder with a game to begin with.

use crate::args::{NewArgs, Template};
use anyhow::{Context, bail, ensure};
use parlor_terminal::print::say;
use std::fs;
use std::path::{Path, PathBuf};

/// The manifest's line that names this library, as the examples have it.
const DEPENDENCY: &str = "parlor = { path = \"../../crates/client\", features = [\"server\"] }";

impl Template {
    /// Its manifest and its program.
    const fn files(self) -> [&'static str; 2] {
        match self {
            Template::Dots => [
                include_str!("../../../../examples/dots/Cargo.toml"),
                include_str!("../../../../examples/dots/src/main.rs"),
            ],
            Template::Tanks => [
                include_str!("../../../../examples/tanks/Cargo.toml"),
                include_str!("../../../../examples/tanks/src/main.rs"),
            ],
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Template::Dots => "dots",
            Template::Tanks => "tanks",
        }
    }
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the folder or its name, or why it could not be written.
pub(crate) fn run(args: &NewArgs) -> anyhow::Result<()> {
    let name = args.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    check_name(name)?;
    let source = match &args.parlor {
        Some(checkout) => Some(library_in(checkout).with_context(|| {
            format!("{} is no checkout of Parlor: it has no crates/client", checkout.display())
        })?),
        None => checkout_of_this_program(),
    };
    create(&args.folder, name, args.template, source.as_deref())?;
    let there = args.folder.display();
    say(&format!("{there} has a game. Next:\n\n  cd {there}"));
    say("  cargo run            # opens a room and shows its code");
    say("  cargo run -- CODE    # joins it, in a second terminal");
    say("  cargo test           # two players over a bad network");
    Ok(())
}

/// Writes the game. `source` is the folder of the library; `None` takes the published one.
fn create(folder: &Path, name: &str, template: Template, source: Option<&Path>) -> anyhow::Result<()> {
    let is_taken = fs::read_dir(folder).map_or(folder.exists(), |mut there| there.next().is_some());
    ensure!(!is_taken, "{} is there and not empty: choose another folder", folder.display());
    let [manifest, program] = template.files();
    let dependency = match source {
        Some(source) => {
            let source = source.to_str().context("the path of the library is no text")?;
            format!("parlor = {{ path = {source:?}, features = [\"server\"] }}")
        }
        None => format!("parlor = {{ version = {:?}, features = [\"server\"] }}", env!("CARGO_PKG_VERSION")),
    };
    let own = manifest
        .lines()
        .filter(|line| !line.starts_with('#') && !line.starts_with("version = ") && *line != "[workspace]")
        .map(|line| if line == DEPENDENCY { &dependency } else { line })
        .collect::<Vec<_>>()
        .join("\n")
        .replace(
            &format!("name = \"{}\"", template.name()),
            &format!("name = \"{name}\"\nversion = \"0.1.0\""),
        );
    // Whatever project surrounds the folder, the game is one of its own.
    let manifest = format!("{}\n\n[workspace]\n", own.replace("\n\n\n", "\n\n").trim_end());
    let write = |path: PathBuf, text: &str| {
        fs::write(&path, text).with_context(|| format!("{} could not be written", path.display()))
    };
    fs::create_dir_all(folder.join("src"))
        .with_context(|| format!("{} could not be made", folder.display()))?;
    write(folder.join("Cargo.toml"), &manifest)?;
    write(folder.join("src/main.rs"), program)?;
    write(folder.join(".gitignore"), "/target\n")
}

/// A name that cargo takes for a package, and that a room takes for a game.
fn check_name(name: &str) -> anyhow::Result<()> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) || !name.chars().all(is_letter) {
        bail!(
            "the game is named after its folder, and {name:?} is no name for it: begin with a letter, and take letters, \
             digits, - and _"
        );
    }
    const LONGEST: usize = parlor_proto::limits::LABEL_BYTES_MAX;
    ensure!(name.len() <= LONGEST, "the name of a game has at most {LONGEST} letters");
    const TAKEN: [&str; 12] = [
        "test",
        "core",
        "std",
        "alloc",
        "crate",
        "self",
        "super",
        "fn",
        "mod",
        "parlor",
        "serde",
        "crossterm",
    ];
    ensure!(!TAKEN.contains(&name), "{name:?} has a meaning of its own in Rust: choose another name");
    Ok(())
}

/// The library in a checkout.
fn library_in(checkout: &Path) -> Option<PathBuf> {
    let library = checkout.join("crates/client");
    let manifest = fs::read_to_string(library.join("Cargo.toml")).ok()?;
    manifest.lines().any(|line| line == "name = \"parlor\"").then(|| library.canonicalize().ok())?
}

/// The library from which this program was built, if it still lies in the checkout.
fn checkout_of_this_program() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    program.ancestors().skip(1).find_map(library_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_template_is_a_package_of_its_own_with_the_name_of_its_folder() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (template, source) in [(Template::Dots, None), (Template::Tanks, Some(Path::new("/where/it is")))]
        {
            let game = folder.path().join(template.name());
            create(&game, "my-game", template, source).expect("it is empty");
            let manifest = fs::read_to_string(game.join("Cargo.toml")).expect("it is there");
            let manifest: toml::Table = manifest.parse().expect("it is TOML");
            assert_eq!(manifest["package"]["name"].as_str(), Some("my-game"));
            assert_eq!(manifest["package"]["version"].as_str(), Some("0.1.0"));
            assert!(manifest.contains_key("workspace"), "{manifest:?}");
            let parlor = &manifest["dependencies"]["parlor"];
            let (key, value) =
                source.map_or(("version", env!("CARGO_PKG_VERSION")), |_| ("path", "/where/it is"));
            assert_eq!(parlor[key].as_str(), Some(value), "{parlor:?}");
            assert!(!fs::read_to_string(game.join("src/main.rs")).expect("it is there").contains("\"dots\""));
            let again = create(&game, "my-game", template, source).expect_err("it is not empty");
            assert!(again.to_string().contains("not empty"), "{again}");
        }
    }

    #[test]
    fn a_name_is_one_of_a_package_and_of_a_game() {
        for good in ["tanks", "my-game", "a_1"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "1st", "-x", "my game", "spiel\u{e9}", "a/b", "test", "parlor", &"x".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
