//! `parlor new`: a folder with a game to begin with.

mod cargo;
mod npm;

use crate::args::{NewArgs, Template};
use anyhow::{Context, bail, ensure};
use parlor_terminal::print::say;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of a game, by their paths in its folder.
type Files = BTreeMap<&'static str, Cow<'static, str>>;

/// What builds a game.
enum Build {
    Cargo(cargo::Package),
    /// With the name of the template in `npm create parlor`.
    Npm(&'static str),
}

impl Template {
    const fn build(self) -> Build {
        match self {
            Template::Dots => Build::Cargo(cargo::DOTS),
            Template::Tanks => Build::Cargo(cargo::TANKS),
            Template::Bevy => Build::Cargo(cargo::BEVY),
            Template::Browser => Build::Npm("vanilla"),
            Template::Phaser => Build::Npm("phaser"),
            Template::React => Build::Npm("react"),
        }
    }

    fn files(self, name: &str, checkout: Option<&Path>) -> anyhow::Result<Files> {
        match self.build() {
            Build::Cargo(package) => package.files(name, checkout),
            Build::Npm(template) => npm::files(template, name, checkout),
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
    let checkout = match &args.parlor {
        Some(folder) => Some(checkout_at(folder).with_context(|| {
            format!("{} is no checkout of Parlor: it has no crates/client", folder.display())
        })?),
        None => checkout_of_this_program(),
    };
    write(&args.folder, &args.template.files(name, checkout.as_deref())?)?;
    let there = args.folder.display();
    say(&format!("{there} has a game. Next:\n"));
    match args.template.build() {
        Build::Cargo(_) => {
            say(&format!("  cd {there}"));
            say("  cargo run            # opens a room and shows its code");
            say("  cargo run -- CODE    # joins it, in a second terminal");
            say("  cargo test           # two players over a bad network");
        }
        Build::Npm(_) => {
            if let Some(checkout) = checkout.filter(|checkout| !checkout.join("sdk/ts/dist").exists()) {
                say(&format!("  cd {}    # its SDK is not built yet", checkout.display()));
                say("  cargo xtask web && npm ci --prefix sdk/ts && npm run build --prefix sdk/ts");
            }
            say(&format!("  cd {there}"));
            say("  npm install");
            say("  npm run dev          # the page: its invite is for the second player");
            say("  npm test             # two players over a bad network");
            say("\nBoth need a server in another terminal, which takes pages of other origins by name:\n");
            say("  parlor serve --web-origins http://localhost:5173");
        }
    }
    Ok(())
}

/// Writes the game into an empty folder.
fn write(folder: &Path, files: &Files) -> anyhow::Result<()> {
    let is_file = |entry: fs::DirEntry| entry.file_name() != ".git";
    let is_taken = fs::read_dir(folder).map_or(folder.exists(), |there| there.flatten().any(is_file));
    ensure!(!is_taken, "{} is there and not empty: choose another folder", folder.display());
    for (path, text) in files {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).with_context(|| format!("{} could not be made", parent.display()))?;
        fs::write(&path, text.as_ref())
            .with_context(|| format!("{} could not be written", path.display()))?;
    }
    Ok(())
}

/// A name that cargo and npm take for a package, and that a room takes for a game.
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
    const TAKEN: &str = "test core std alloc crate self super fn mod \
         bevy bevy_app bevy_ecs crossterm parlor parlor-bevy phaser react react-dom serde typescript vite vitest ws";
    let is_taken = TAKEN.split_whitespace().any(|taken| taken == name);
    ensure!(!is_taken, "{name:?} is the name of something that games are made with: choose another name");
    Ok(())
}

/// A folder, if it is a checkout.
fn checkout_at(folder: &Path) -> Option<PathBuf> {
    let manifest = fs::read_to_string(folder.join("crates/client/Cargo.toml")).ok()?;
    manifest.lines().any(|line| line == "name = \"parlor\"").then(|| folder.canonicalize().ok())?
}

/// The checkout from which this program was built, if it still lies there.
fn checkout_of_this_program() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    program.ancestors().skip(1).find_map(checkout_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn each_template_in_rust_is_a_package_of_its_own_with_the_name_of_its_folder() {
        for (template, crates) in [(Template::Dots, 1), (Template::Tanks, 1), (Template::Bevy, 2)] {
            for checkout in [None, Some(Path::new("/where/it is"))] {
                let files = template.files("my-game", checkout).expect("the path is text");
                let manifest: toml::Table = files["Cargo.toml"].parse().expect("it is TOML");
                assert_eq!(manifest["package"]["name"].as_str(), Some("my-game"));
                assert_eq!(manifest["package"]["version"].as_str(), Some("0.1.0"));
                assert!(manifest.contains_key("workspace"), "{manifest:?}");
                let dependencies = manifest["dependencies"].as_table().expect("it has some");
                let own: Vec<_> =
                    dependencies.iter().filter(|(name, _)| name.starts_with("parlor")).collect();
                assert_eq!(own.len(), crates);
                for (name, parlor) in own {
                    let folder = if name == "parlor" { "client" } else { "bevy" };
                    let path = format!("/where/it is/crates/{folder}");
                    let (key, value) =
                        checkout.map_or(("version", env!("CARGO_PKG_VERSION")), |_| ("path", &path));
                    assert_eq!(parlor[key].as_str(), Some(value), "{parlor:?}");
                }
                assert!(files["Cargo.toml"].starts_with("[package]"), "{}", files["Cargo.toml"]);
                assert!(!files["Cargo.toml"].contains("\n\n\n"), "{}", files["Cargo.toml"]);
                assert!(files.contains_key("src/main.rs"));
            }
        }
    }

    #[test]
    fn a_game_is_written_into_a_folder_that_has_at_most_a_repository() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for template in Template::value_variants() {
            let game = folder.path().join(format!("{template:?}"));
            fs::create_dir_all(game.join(".git")).expect("it is new");
            let files = template.files("my-game", None).expect("nothing is looked up");
            write(&game, &files).expect("it is empty");
            for (path, text) in &files {
                assert_eq!(fs::read_to_string(game.join(path)).expect("it is there"), *text);
            }
            let again = write(&game, &files).expect_err("it is not empty");
            assert!(again.to_string().contains("not empty"), "{again}");
        }
    }

    #[test]
    fn a_name_is_one_of_a_package_and_of_a_game() {
        for good in ["tanks", "my-game", "a_1"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in
            ["", "1st", "-x", "my game", "spiel\u{e9}", "a/b", "test", "parlor", "react", &"x".repeat(65)]
        {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
