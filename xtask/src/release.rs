//! The release binary: built as users build it, with a limit on its size.

use std::path::Path;

use crate::invocation::Invocation;
use crate::process::{Failure, spawn};

/// Size limit of the binary `parlor`, in bytes.
const BYTES_MAX: u64 = 25_000_000;

/// Builds the binary and checks its size; the error is how to repeat it.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    spawn(root, &Invocation::cargo("build --release --package parlor-cli"))?;
    let said = check(&root.join("target/release/parlor"), BYTES_MAX);
    println!("    {}", said.as_ref().unwrap_or_else(|why| why));
    let failure = |why| Failure { why: "cargo xtask test --only release".to_owned(), excerpt: vec![why] };
    said.map(drop).map_err(failure)
}

/// Returns a file's size as text, as an error if it is too large.
fn check(file: &Path, bytes_max: u64) -> Result<String, String> {
    let bytes = file.metadata().map_err(|error| format!("{}: {error}", file.display()))?.len();
    let said = format!("{} has {bytes} bytes, of {bytes_max} that it may have", file.display());
    if bytes <= bytes_max { Ok(said) } else { Err(format!("{said}: look for what it links without need")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_have_so_many_bytes_and_no_more() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let bytes = file.metadata().unwrap().len();
        assert!(check(&file, bytes).is_ok() && check(&file, bytes - 1).is_err());
        assert!(check(Path::new("/no/such/file"), 1).unwrap_err().contains("/no/such/file"));
    }
}
