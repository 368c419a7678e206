//! Games in TypeScript: those of `npm create parlor`, from the same files.

use super::Files;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

/// Of what layers each template is made, in their order.
const TEMPLATES: &str = include_str!("../../../assets/browser/templates.json");

macro_rules! layers {
    ($($path:literal)*) => {
        &[$(($path, include_str!(concat!("../../../assets/browser/", $path)))),*]
    };
}

/// The files of all layers. A test compares them with the folder.
const FILES: &[(&str, &str)] = layers![
    "base/gitignore"
    "base/package.json"
    "base/src/place.ts"
    "base/src/style.css"
    "base/tsconfig.json"
    "phaser/package.json"
    "phaser/src/main.ts"
    "react/index.html"
    "react/package.json"
    "react/src/app.tsx"
    "react/src/game.test.ts"
    "react/src/game.ts"
    "react/src/main.tsx"
    "react/src/tiles.css"
    "react/vite.config.js"
    "sparks/index.html"
    "sparks/package.json"
    "sparks/src/controls.ts"
    "sparks/src/game.test.ts"
    "sparks/src/game.ts"
    "sparks/src/page.ts"
    "vanilla/package.json"
    "vanilla/src/main.ts"
];

#[derive(Deserialize)]
struct Template {
    layers: Vec<String>,
}

/// The package of a game: its name comes first.
#[derive(Serialize)]
struct Package {
    name: String,
    #[serde(flatten)]
    rest: Value,
}

/// The files of a game of this name.
///
/// # Errors
/// If the checkout has a path that is no text.
pub(super) fn files(template: &str, name: &str, checkout: Option<&Path>) -> anyhow::Result<Files> {
    let mut templates: BTreeMap<String, Template> = serde_json::from_str(TEMPLATES)?;
    let Template { layers } = templates.remove(template).context("npm create parlor has no such template")?;
    // npm takes no capitals.
    let mut package = Package { name: name.to_ascii_lowercase(), rest: Value::default() };
    let mut files = Files::new();
    for layer in &layers {
        let own = |path: &'static str| path.strip_prefix(layer.as_str())?.strip_prefix('/');
        for (path, text) in FILES.iter().filter_map(|(path, text)| Some((own(path)?, *text))) {
            match path {
                "package.json" => merge(&mut package.rest, serde_json::from_str(text)?),
                // npm leaves a .gitignore out of packages.
                "gitignore" => drop(files.insert(".gitignore", Cow::Borrowed(text))),
                _ => drop(files.insert(path, Cow::Borrowed(text))),
            }
        }
    }
    let sdk = match checkout {
        Some(checkout) => {
            // It is copied into the game: Vite serves no files that lie outside of it.
            files.insert(".npmrc", "install-links=true\n".into());
            format!("file:{}/sdk/ts", checkout.to_str().context("the path of the library is no text")?)
        }
        None => format!("^{}", env!("CARGO_PKG_VERSION")),
    };
    package.rest["dependencies"]["parlor"] = sdk.into();
    files.insert("package.json", (serde_json::to_string_pretty(&package)? + "\n").into());
    Ok(files)
}

/// What all layers need is in the game's package.
fn merge(into: &mut Value, from: Value) {
    match from {
        Value::Object(from) => {
            for (key, value) in from {
                merge(&mut into[key], value);
            }
        }
        from => *into = from,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The files below a folder, named from it.
    fn below(folder: &Path, prefix: &str) -> Vec<String> {
        let entries =
            fs::read_dir(folder).expect("it is a folder").map(|entry| entry.expect("it is read").path());
        let named = entries.flat_map(|path| {
            let name =
                format!("{prefix}{}", path.file_name().and_then(|name| name.to_str()).expect("it is text"));
            if path.is_dir() { below(&path, &format!("{name}/")) } else { vec![name] }
        });
        named.collect()
    }

    #[test]
    fn all_files_of_npm_create_parlor_are_known() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/browser");
        let mut there = below(&folder, "");
        there.retain(|path| path != "templates.json");
        there.sort();
        let known: Vec<&str> = FILES.iter().map(|(path, _)| *path).collect();
        assert_eq!(known, there, "FILES has what lies in {}", folder.display());
    }

    #[test]
    fn a_package_has_what_all_its_layers_need() {
        for (template, needs) in [("vanilla", None), ("phaser", Some("phaser")), ("react", Some("react-dom"))]
        {
            let files = files(template, "My-Game", None).expect("it is one of three");
            assert!(files.contains_key("src/game.ts") && files.contains_key("src/style.css"), "{template}");
            assert!(files.contains_key(".gitignore") && !files.contains_key("gitignore"), "{template}");
            let package: Value = serde_json::from_str(&files["package.json"]).expect("it is JSON");
            assert_eq!(package["name"], "my-game");
            assert_eq!(package["dependencies"]["parlor"], concat!("^", env!("CARGO_PKG_VERSION")));
            assert_eq!(package["scripts"]["dev"], "vite");
            for name in needs.into_iter() {
                assert!(package["dependencies"][name].is_string(), "{package}");
            }
        }
    }

    #[test]
    fn the_sdk_of_a_checkout_is_copied_into_the_game() {
        let files = files("vanilla", "game", Some(Path::new("/where/it is"))).expect("it is one of three");
        let package: Value = serde_json::from_str(&files["package.json"]).expect("it is JSON");
        assert_eq!(package["dependencies"]["parlor"], "file:/where/it is/sdk/ts");
        assert_eq!(files[".npmrc"], "install-links=true\n");
    }
}
