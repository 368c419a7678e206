//! The npm packages: one for each target with its binary, and `parlor`, the SDK that runs it.
//!
//! `parlor` names them as optional dependencies. npm installs the one whose `os` and `cpu` are the machine's, so that
//! `npx parlor play` needs no script that downloads.

use std::path::Path;

use serde_json::{Value, json};

use super::target::{TARGETS, Target};
use super::{Release, files};
use crate::invocation::Invocation;
use crate::process::{Failure, spawn};
use crate::{sdk, wasm, web};

fn name(target: Target) -> String {
    format!("parlor-linux-{}", target.node)
}

/// Packs the package of a target, of what was made for the archive.
pub(super) fn pack_binary(release: &Release, target: Target, unpacked: &Path) -> Result<(), Failure> {
    let folder = release.out.join("unpacked/npm").join(name(target));
    files::copy(&unpacked.join("parlor"), &folder.join("bin/parlor"), 0o755)?;
    for text in ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY-LICENSES"] {
        files::copy(&unpacked.join(text), &folder.join(text), 0o644)?;
    }
    let readme = format!(
        "# {}\n\nThe program `parlor` for Linux on {}. The package `parlor` installs it: `npx parlor play`.\n",
        name(target),
        target.node
    );
    files::write(&folder.join("README.md"), readme.as_bytes())?;
    let manifest = json!({
        "name": name(target),
        "version": release.version,
        "description": format!("The program parlor for Linux on {}", target.node),
        "license": "MIT OR Apache-2.0",
        "os": ["linux"],
        "cpu": [target.node],
        "files": ["bin", "THIRD-PARTY-LICENSES"],
        "preferUnplugged": true
    });
    pack(release, &folder, &manifest)
}

/// Builds the SDK, and packs it with the names of the binaries.
pub(super) fn pack_library(release: &Release) -> Result<(), Failure> {
    let Release { root, out, version, .. } = release;
    web::run(root, &wasm::build()?)?;
    for call in sdk::built(root)? {
        spawn(root, &call)?;
    }
    let folder = out.join("unpacked/npm/parlor");
    let source = root.join("sdk/ts");
    for part in ["dist", "bin"] {
        files::copy_all(&source.join(part), &folder.join(part))?;
    }
    files::copy(&source.join("README.md"), &folder.join("README.md"), 0o644)?;
    for text in ["LICENSE-APACHE", "LICENSE-MIT"] {
        files::copy(&root.join(text), &folder.join(text), 0o644)?;
    }
    let mut manifest: Value = serde_json::from_str(&files::read(&source.join("package.json"))?)
        .map_err(|error| Failure::of(format!("sdk/ts/package.json: {error}")))?;
    if manifest["version"] != *version {
        return Err(Failure::of(format!(
            "sdk/ts/package.json has version {}, not {version}",
            manifest["version"]
        )));
    }
    let binaries: serde_json::Map<String, Value> =
        TARGETS.into_iter().map(|target| (name(target), json!(version))).collect();
    manifest["optionalDependencies"] = Value::Object(binaries);
    for key in ["scripts", "devDependencies"] {
        manifest.as_object_mut().map(|manifest| manifest.remove(key));
    }
    pack(release, &folder, &manifest)
}

fn pack(release: &Release, folder: &Path, manifest: &Value) -> Result<(), Failure> {
    let text = format!("{manifest:#}\n");
    files::write(&folder.join("package.json"), text.as_bytes())?;
    let call =
        Invocation::new("npm").args("pack --silent --pack-destination").args(&release.out.to_string_lossy());
    files::output(&call, folder).map(drop)
}
