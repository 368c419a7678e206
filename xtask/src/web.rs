//! What a page loads: the client's core as WebAssembly, with a limit on its size.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::invocation::Invocation;
use crate::process::{Failure, spawn};
use crate::wasm::{FILE, rustup_has_target};

/// Size limit of the file as a page loads it, compressed by `gzip -9`, in bytes. The aim is 230,000:
/// docs/performance.md says what stands in the way.
const GZIP_BYTES_MAX: u64 = 382_000;

/// What rustup's standard library may add: it is compiled already, for speed and with the texts of panics.
const READY_STD_GZIP_BYTES_MAX: u64 = 50_000;

/// Builds the file and checks its size; the error is how to repeat it.
pub(crate) fn run(root: &Path, build: &Invocation) -> Result<(), Failure> {
    spawn(root, build)?;
    let std_bytes = if rustup_has_target() { READY_STD_GZIP_BYTES_MAX } else { 0 };
    let said = check(&root.join(FILE), GZIP_BYTES_MAX + std_bytes);
    println!("    {}", said.as_ref().unwrap_or_else(|why| why));
    let failure = |why| Failure { why: "cargo xtask web".to_owned(), excerpt: vec![why] };
    said.map(drop).map_err(failure)
}

/// Returns a file's size and compressed size as text, as an error if the latter is too large.
fn check(file: &Path, gzip_bytes_max: u64) -> Result<String, String> {
    let named = |error: io::Error| format!("{}: {error}", file.display());
    let bytes = file.metadata().map_err(named)?.len();
    let compressed = Command::new("gzip")
        .args(["-9", "--stdout"])
        .stdin(std::fs::File::open(file).map_err(named)?)
        .stdout(Stdio::piped())
        .output()
        .map_err(|error| format!("gzip: {error}"))?;
    let gzip_bytes = compressed.stdout.len() as u64;
    let file = file.display();
    let said =
        format!("{file} has {bytes} bytes, {gzip_bytes} compressed, of {gzip_bytes_max} that it may have");
    if gzip_bytes <= gzip_bytes_max {
        Ok(said)
    } else {
        Err(format!("{said}: look for what it links without need"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_have_so_many_bytes_compressed_and_no_more() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/web.rs");
        let said = check(&file, 1 << 20).expect("it is small");
        let compressed = said.split(' ').nth(4).and_then(|bytes| bytes.parse().ok()).expect("it is said");
        assert!(compressed < file.metadata().unwrap().len(), "{said}");
        assert!(check(&file, compressed).is_ok() && check(&file, compressed - 1).is_err());
        assert!(check(Path::new("/no/such/file"), 1).unwrap_err().contains("/no/such/file"));
    }
}
