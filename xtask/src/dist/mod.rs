//! `cargo xtask dist`: what a release consists of, in `target/dist`.
//!
//! For this machine's [`target`], or another one that is named: a static binary in an archive, a Debian package and an
//! npm package with the binary; the npm package `parlor`, which has the SDK and takes the binary of its machine along;
//! and checksums of all.

mod archive;
mod debian;
mod files;
mod licences;
mod npm;
mod target;

use std::path::{Path, PathBuf};

use crate::invocation::Invocation;
use crate::options::DistOptions;
use crate::plan::need;
use crate::process::Failure;
use target::Target;

/// Where it is left.
pub(crate) const FOLDER: &str = "target/dist";
/// Size limit of the binary, in bytes.
const BINARY_BYTES_MAX: u64 = 28_500_000;
/// Size limit of an archive, in bytes.
const ARCHIVE_BYTES_MAX: u64 = 12_000_000;

/// One release.
struct Release<'a> {
    root: &'a Path,
    /// Where everything is left.
    out: PathBuf,
    version: &'static str,
    /// The time of the newest commit, in seconds since 1970: the same commit makes the same archives.
    time: String,
}

/// Makes all of it; the error is what is missing, or how to repeat what failed.
pub(crate) fn make(root: &Path, options: &DistOptions) -> Result<(), Failure> {
    let target = match &options.target {
        Some(name) => Target::named(name)?,
        None => Target::here()?,
    };
    for (program, package) in
        [("tar", "tar"), ("gzip", "gzip"), ("sha256sum", "coreutils"), ("dpkg-deb", "dpkg")]
    {
        let hint = format!("apt-get install {package}");
        need(&format!("{program} --version"), &format!("{program} is not installed"), &hint)?;
    }
    let plan = target.plan(root)?;
    let release = Release {
        root,
        out: root.join(FOLDER),
        version: env!("CARGO_PKG_VERSION"),
        time: time_of_commit(root)?,
    };
    if options.target.is_none() {
        files::emptied(&release.out)?;
        if !options.no_npm {
            npm::pack_library(&release)?;
        }
    }
    let binary = target.build(root, &plan)?;
    within(&binary, BINARY_BYTES_MAX)?;
    let unpacked = archive::unpacked(&release, target, &binary)?;
    within(&archive::pack(&release, &unpacked)?, ARCHIVE_BYTES_MAX)?;
    debian::pack(&release, target, &unpacked)?;
    if !options.no_npm {
        npm::pack_binary(&release, target, &unpacked)?;
    }
    checksums(&release)
}

fn time_of_commit(root: &Path) -> Result<String, Failure> {
    let time = files::output(&Invocation::new("git").args("log -1 --format=%ct"), root)?;
    Ok(String::from_utf8_lossy(&time).trim().to_owned())
}

/// Prints a file's size; it is an error if it is too large.
fn within(file: &Path, bytes_max: u64) -> Result<(), Failure> {
    let said = size(file, bytes_max);
    println!("    {}", said.as_ref().unwrap_or_else(|why| why));
    said.map(drop).map_err(Failure::of)
}

fn size(file: &Path, bytes_max: u64) -> Result<String, String> {
    let bytes = file.metadata().map_err(|error| format!("{}: {error}", file.display()))?.len();
    let said = format!("{} has {bytes} bytes, of {bytes_max} that it may have", file.display());
    if bytes <= bytes_max { Ok(said) } else { Err(format!("{said}: look for what it links without need")) }
}

/// Writes `SHA256SUMS` of all files.
fn checksums(release: &Release) -> Result<(), Failure> {
    let names: Vec<String> = files::entries(&release.out)?
        .into_iter()
        .filter(|path| path.is_file())
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    let call = names.iter().fold(Invocation::new("sha256sum"), |call, name| call.args(name));
    let output = files::output(&call, &release.out)?;
    files::write(&release.out.join("SHA256SUMS"), &output)?;
    println!("    {} has {} files, and their checksums in SHA256SUMS", release.out.display(), names.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_have_so_many_bytes_and_no_more() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let bytes = file.metadata().unwrap().len();
        assert!(size(&file, bytes).is_ok() && size(&file, bytes - 1).is_err());
        assert!(size(Path::new("/no/such/file"), 1).unwrap_err().contains("/no/such/file"));
    }
}
