//! Games in Rust. They are the ones of `examples/`: what a reader sees there is what this writes.

use super::Files;
use anyhow::Context;
use std::borrow::Cow;
use std::path::Path;

/// A package of `examples/`.
pub(super) struct Package {
    manifest: &'static str,
    sources: &'static [(&'static str, &'static str)],
}

pub(super) const DOTS: Package = Package {
    manifest: include_str!("../../../assets/dots.toml"),
    sources: &[("src/main.rs", include_str!("../../../assets/dots.rs"))],
};
pub(super) const TANKS: Package = Package {
    manifest: include_str!("../../../assets/tanks.toml"),
    sources: &[("src/main.rs", include_str!("../../../assets/tanks.rs"))],
};
pub(super) const BEVY: Package = Package {
    manifest: include_str!("../../../assets/bevy.toml"),
    sources: &[
        ("src/main.rs", include_str!("../../../assets/bevy.rs")),
        ("src/terminal.rs", include_str!("../../../assets/bevy-terminal.rs")),
    ],
};

impl Package {
    /// The files of a game of this name.
    ///
    /// # Errors
    /// If the checkout has a path that is no text.
    pub(super) fn files(&self, name: &str, checkout: Option<&Path>) -> anyhow::Result<Files> {
        let mut manifest = String::new();
        for line in self.manifest.lines() {
            match line {
                "[workspace]" => {}
                _ if line.starts_with('#') || line.starts_with("version = ") => {}
                _ if line.starts_with("name = ") => {
                    manifest += &format!("name = \"{name}\"\nversion = \"0.1.0\"\n");
                }
                // The manifest's head ends with two empty lines, where the lines between are left out.
                "" if manifest.ends_with("\n\n") => {}
                _ => manifest += &(own_library(line, checkout)? + "\n"),
            }
        }
        // Whatever project surrounds the folder, the game is one of its own.
        manifest += "\n[workspace]\n";
        let sources = self.sources.iter().map(|&(path, text)| (path, Cow::Borrowed(text)));
        let others = [("Cargo.toml", manifest.into()), (".gitignore", "/target\n".into())];
        Ok(sources.chain(others).collect())
    }
}

/// A line of an example's manifest, where it names a library of this repository: that of the checkout, or else the
/// published one.
fn own_library(line: &str, checkout: Option<&Path>) -> anyhow::Result<String> {
    let Some((before, rest)) = line.split_once("path = \"../../") else { return Ok(line.to_owned()) };
    let (folder, after) =
        rest.split_once('"').context("the manifest of an example has a path without an end")?;
    let Some(checkout) = checkout else {
        return Ok(format!("{before}version = {:?}{after}", env!("CARGO_PKG_VERSION")));
    };
    let library = checkout.join(folder);
    let library = library.to_str().context("the path of the library is no text")?;
    Ok(format!("{before}path = {library:?}{after}"))
}
