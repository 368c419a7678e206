//! The archive: the binary with its licences, manual, completions, and what an operator takes from `deploy`.

use std::path::{Path, PathBuf};

use super::target::Target;
use super::{Release, files, licences};
use crate::invocation::Invocation;
use crate::process::Failure;

/// Each shell with the name of the file that it looks for.
pub(super) const SHELLS: [(&str, &str); 3] =
    [("bash", "parlor"), ("zsh", "_parlor"), ("fish", "parlor.fish")];

/// Makes the folder that is packed.
pub(super) fn unpacked(release: &Release, target: Target, binary: &Path) -> Result<PathBuf, Failure> {
    let Release { root, out, version, .. } = release;
    let folder = out.join("unpacked").join(format!("parlor-{version}-{}", target.triple));
    files::copy(binary, &folder.join("parlor"), 0o755)?;
    for name in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        files::copy(&root.join(name), &folder.join(name), 0o644)?;
    }
    let licences = licences::of(root, target.triple)?;
    files::write(&folder.join("THIRD-PARTY-LICENSES"), licences.as_bytes())?;
    files::copy_all(&root.join("deploy"), &folder.join("deploy"))?;
    write_manual(target, &folder)?;
    Ok(folder)
}

/// Lets the program of `folder` write its manual and its completions.
fn write_manual(target: Target, folder: &Path) -> Result<(), Failure> {
    let program = folder.join("parlor");
    files::output(&target.call(&program).args("man man"), folder)?;
    for (shell, file) in SHELLS {
        let script = files::output(&target.call(&program).args("completions").args(shell), folder)?;
        files::write(&folder.join("completions").join(shell).join(file), &script)?;
    }
    Ok(())
}

/// Packs a folder into an archive, and returns that. The same files give the same bytes.
pub(super) fn pack(release: &Release, folder: &Path) -> Result<PathBuf, Failure> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let tar = release.out.join(format!("{name}.tar"));
    let call = Invocation::new("tar")
        .args("--sort=name --owner=0 --group=0 --numeric-owner --format=gnu")
        .args(&format!("--mtime=@{}", release.time))
        .args(&format!("--create --file ../{name}.tar {name}"));
    files::output(&call, &release.out.join("unpacked"))?;
    files::output(
        &Invocation::new("gzip").args("-9 --no-name --force").args(&tar.to_string_lossy()),
        &release.out,
    )?;
    Ok(release.out.join(format!("{name}.tar.gz")))
}
