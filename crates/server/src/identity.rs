//! Sources of a server's certificate.

use crate::config::IdentitySource;
use parlor_transport::{Identity, IdentityError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{fs, process};
use thiserror::Error;

/// The file in the folder of a development identity. It holds the certificate and its key.
pub const IDENTITY_FILE: &str = "identity.pem";

/// The names of a development certificate. Clients check its fingerprint, whatever name they use.
pub(crate) const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Why a server has no identity.
#[derive(Debug, Error)]
pub enum IdentitySourceError {
    /// A file could not be read.
    #[error("the {what} cannot be read from {}: {error}. Check the path, and that this user may read it", path.display())]
    Unreadable {
        /// Certificate or private key.
        what: &'static str,
        /// Where it was expected.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// The files exist and are no valid identity.
    #[error("{} and {} are no identity: {error}", certificate.display(), key.display())]
    Unusable {
        /// The file with the certificate.
        certificate: PathBuf,
        /// The file with the key.
        key: PathBuf,
        /// What is wrong.
        error: IdentityError,
    },
    /// The stored development identity is damaged.
    #[error(
        "the development identity in {} is damaged: {error}. Delete the file to have another one made; clients that \
         know the old fingerprint must be told the new one", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: IdentityError,
    },
    /// Other users can read the stored key, and could impersonate this server.
    #[error(
        "the development identity in {} may be read by others (mode {mode:03o}). Run chmod 600 on it, or delete it to have \
         another one made", path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A new identity could not be stored.
    #[error(
        "the development identity cannot be kept in {}: {error}. Name a folder that this user may write to, or none",
        path.display()
    )]
    Unwritable {
        /// The file, or its folder.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// No certificate could be generated.
    #[error("no development identity could be made: {0}")]
    NotMade(IdentityError),
}

/// Loads the identity, or generates it.
pub(crate) fn obtain(source: &IdentitySource) -> Result<Identity, IdentitySourceError> {
    match source {
        IdentitySource::Development { folder: None } => make(),
        IdentitySource::Development { folder: Some(folder) } => kept(folder),
        IdentitySource::Files { certificate, key } => {
            let chain = read("certificate", certificate)?;
            let secret = read("private key", key)?;
            Identity::from_pem(&chain, &secret).map_err(|error| IdentitySourceError::Unusable {
                certificate: certificate.clone(),
                key: key.clone(),
                error,
            })
        }
    }
}

fn make() -> Result<Identity, IdentitySourceError> {
    Identity::generate(&NAMES).map_err(IdentitySourceError::NotMade)
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, IdentitySourceError> {
    fs::read(path).map_err(|error| IdentitySourceError::Unreadable { what, path: path.to_owned(), error })
}

/// The identity in a folder; the first start generates it.
fn kept(folder: &Path) -> Result<Identity, IdentitySourceError> {
    let path = folder.join(IDENTITY_FILE);
    match fs::symlink_metadata(&path) {
        Ok(_) => load(&path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let identity = make()?;
            let kept = keep(folder, &path, &identity);
            kept.map_err(|error| IdentitySourceError::Unwritable { path: path.clone(), error })?;
            // Loads the file again: of two servers that start at once, one finds the other's.
            load(&path)
        }
        Err(error) => Err(IdentitySourceError::Unreadable { what: "development identity", path, error }),
    }
}

pub(crate) fn load(path: &Path) -> Result<Identity, IdentitySourceError> {
    let pem = read("development identity", path)?;
    check_private(path)?;
    Identity::from_pem(&pem, &pem)
        .map_err(|error| IdentitySourceError::Damaged { path: path.to_owned(), error })
}

/// Stores the identity if there is none yet. A reader sees a complete file or none.
fn keep(folder: &Path, path: &Path, identity: &Identity) -> io::Result<()> {
    let draft = write_draft(folder, identity)?;
    // Linking, unlike renaming, never replaces a file.
    let linked = match fs::hard_link(&draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // The file system has no links.
        Err(_) => fs::copy(&draft, path).map(|_| ()),
        Ok(()) => Ok(()),
    };
    match fs::remove_file(&draft) {
        Err(error) if linked.is_ok() => {
            tracing::warn!(path = %draft.display(), %error, "a draft of the identity stays behind: delete it");
        }
        Ok(()) | Err(_) => {}
    }
    linked
}

/// Stores the identity in place of the one before. A reader sees a complete file.
pub(crate) fn replace(folder: &Path, path: &Path, identity: &Identity) -> io::Result<()> {
    fs::rename(write_draft(folder, identity)?, path)
}

/// Writes the identity to a file of its own in the folder, which is made if missing.
fn write_draft(folder: &Path, identity: &Identity) -> io::Result<PathBuf> {
    create_private_folder(folder)?;
    let draft = folder.join(format!("{IDENTITY_FILE}.{}.draft", process::id()));
    let pem = identity.to_pem();
    // A server killed at this point may have had the same process id: in a container it is always 1.
    if draft.exists() {
        fs::remove_file(&draft)?;
    }
    write_private(&draft, &[pem.certificates.as_bytes(), pem.key.as_bytes()])?;
    Ok(draft)
}

fn write_private(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    parts.iter().try_for_each(|part| file.write_all(part))?;
    file.sync_all()
}

fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(unix)]
fn check_private(path: &Path) -> Result<(), IdentitySourceError> {
    use std::os::unix::fs::PermissionsExt;
    let what = "development identity";
    let metadata = fs::metadata(path);
    let metadata =
        metadata.map_err(|error| IdentitySourceError::Unreadable { what, path: path.to_owned(), error })?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 { Ok(()) } else { Err(IdentitySourceError::Exposed { path: path.to_owned(), mode }) }
}

#[cfg(not(unix))]
fn check_private(_: &Path) -> Result<(), IdentitySourceError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn development(folder: &Path) -> Result<Identity, IdentitySourceError> {
        obtain(&IdentitySource::Development { folder: Some(folder.to_owned()) })
    }

    #[test]
    fn a_kept_identity_stays_and_a_fresh_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let first = development(&folder.path().join("new")).unwrap();
        assert_eq!(development(&folder.path().join("new")).unwrap().fingerprint(), first.fingerprint());
        let files = fs::read_dir(folder.path().join("new")).unwrap().count();
        assert_eq!(files, 1, "no draft stays behind");
        let fresh = obtain(&IdentitySource::Development { folder: None }).unwrap();
        assert_ne!(fresh.fingerprint(), first.fingerprint());
    }

    #[test]
    #[cfg(unix)]
    fn a_key_that_others_may_read_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        development(folder.path()).unwrap();
        let path = folder.path().join(IDENTITY_FILE);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = development(folder.path()).unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }

    #[test]
    fn errors_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(IDENTITY_FILE);
        write_private(&path, &[b"nonsense"]).unwrap();
        let damaged = development(folder.path()).unwrap_err();
        assert!(matches!(damaged, IdentitySourceError::Damaged { .. }), "{damaged}");
        assert!(damaged.to_string().contains(IDENTITY_FILE), "{damaged}");

        let missing = folder.path().join("missing.pem");
        let source = IdentitySource::Files { certificate: missing.clone(), key: missing };
        let error = obtain(&source).unwrap_err();
        assert!(error.to_string().contains("missing.pem"), "{error}");

        let nowhere = development(&path.join("below a file")).unwrap_err();
        assert!(nowhere.to_string().contains("below a file"), "{nowhere}");
    }

    #[test]
    fn files_are_taken_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let identity = make().unwrap();
        let (certificate, key) = (folder.path().join("chain.pem"), folder.path().join("key.pem"));
        fs::write(&certificate, identity.to_pem().certificates).unwrap();
        fs::write(&key, identity.to_pem().key).unwrap();
        let loaded = obtain(&IdentitySource::Files { certificate: certificate.clone(), key }).unwrap();
        assert_eq!(loaded.fingerprint(), identity.fingerprint());
        let error = obtain(&IdentitySource::Files { key: certificate.clone(), certificate }).unwrap_err();
        assert!(error.to_string().contains("no private key"), "{error}");
    }
}
