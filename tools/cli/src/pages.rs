//! The pages of `serve --pages`: a folder as `node web/build.mjs FOLDER` writes it, read once.
//!
//! Its `pages.json` lists the files. Only what is listed there is read, from this folder itself, and all of it is bounded:
//! a wrong folder is an error at the start, and no request ever reaches the disk.

use anyhow::{Context, bail, ensure};
use parlor_server::WebFile;
use serde::Deserialize;
use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

const MANIFEST: &str = "pages.json";
/// Sizes in bytes, of the list and of all files together.
const MANIFEST_MAX: u64 = 64 << 10;
const ALL_MAX: u64 = 16 << 20;
const FILES_MAX: usize = 256;
/// A gzip file begins with it.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// An entry of the list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Entry {
    /// The path that browsers ask for.
    path: String,
    content_type: String,
    /// The name of the file in the folder, which is compressed with gzip.
    file: String,
}

/// Reads the pages in a folder. They stay in memory until the process ends.
///
/// # Errors
/// What is wrong with the folder, and with which file.
pub(crate) fn read(folder: &Path) -> anyhow::Result<&'static [WebFile]> {
    let files = parse(folder).with_context(|| {
        format!(
            "the pages of {} are refused; `node web/build.mjs FOLDER` builds such a folder",
            folder.display()
        )
    })?;
    // A server's answers borrow them for as long as it runs, and this process runs one server, once.
    Ok(files.leak())
}

fn parse(folder: &Path) -> anyhow::Result<Vec<WebFile>> {
    let list = take(folder, MANIFEST, MANIFEST_MAX)?;
    let entries: Vec<Entry> = serde_json::from_slice(&list).with_context(|| MANIFEST.to_owned())?;
    ensure!(entries.len() <= FILES_MAX, "{MANIFEST} lists {} files, of {FILES_MAX} at most", entries.len());
    let mut paths = HashSet::new();
    let mut left = ALL_MAX;
    let mut files = Vec::with_capacity(entries.len());
    for Entry { path, content_type, file } in entries {
        ensure!(
            is_path(&path),
            "{MANIFEST}: {path:?} is no path of a page: letters, digits and - . _ / after a /"
        );
        ensure!(paths.insert(path.clone()), "{MANIFEST} lists {path:?} twice");
        ensure!(is_content_type(&content_type), "{MANIFEST}: {content_type:?} is no content type");
        ensure!(is_name(&file), "{MANIFEST}: {file:?} is no name of a file in this folder");
        let gzip = take(folder, &file, left)?;
        ensure!(gzip.starts_with(&GZIP), "{file} is not compressed with gzip");
        left -= gzip.len() as u64;
        files.push(WebFile { path: path.leak(), content_type: content_type.leak(), gzip: gzip.leak() });
    }
    ensure!(paths.contains("/"), "{MANIFEST} lists no page at /");
    Ok(files)
}

/// Reads a file of at most `max` bytes.
fn take(folder: &Path, name: &str, max: u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let path = folder.join(name);
    // A pipe or a device would never end.
    ensure!(path.metadata().with_context(|| name.to_owned())?.is_file(), "{name} is no file");
    let file = File::open(path).with_context(|| name.to_owned())?;
    file.take(max + 1).read_to_end(&mut bytes).with_context(|| name.to_owned())?;
    if bytes.len() as u64 > max {
        bail!(
            "{name} is too large: {max} bytes are left of {ALL_MAX} for all files, or {MANIFEST_MAX} for {MANIFEST}"
        );
    }
    Ok(bytes)
}

/// Whether a text is a name in a folder, and no way to another.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('.') && text.bytes().all(is_plain)
}

/// Whether a browser can ask for it as it stands.
fn is_path(text: &str) -> bool {
    text.strip_prefix('/').is_some_and(|rest| rest.is_empty() || rest.split('/').all(is_name))
}

fn is_content_type(text: &str) -> bool {
    text.contains('/') && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const PAGE: &str = r#"{"path": "/", "contentType": "text/html", "file": "index.html.gz"}"#;
    const GZIPPED: &[u8] = b"\x1f\x8b the page";

    /// A folder with a list, `index.html.gz` and `text.gz`, which is not compressed.
    fn folder(list: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(MANIFEST), list).unwrap();
        fs::write(folder.path().join("index.html.gz"), GZIPPED).unwrap();
        fs::write(folder.path().join("text.gz"), "text").unwrap();
        folder
    }

    #[test]
    fn a_folder_is_read_as_its_list_says() {
        let files = read(folder(&format!("[{PAGE}]")).path()).unwrap();
        let [WebFile { path: "/", content_type: "text/html", gzip: GZIPPED }] = files else {
            panic!("{files:?}");
        };
    }

    #[test]
    fn a_folder_that_is_wrong_is_refused_with_what_is_wrong() {
        let asset = |path: &str, kind: &str, file: &str| {
            format!(r#"[{PAGE}, {{"path": "{path}", "contentType": "{kind}", "file": "{file}"}}]"#)
        };
        let many = format!("[{}]", vec![PAGE; FILES_MAX + 1].join(","));
        for (list, why) in [
            ("[]".to_owned(), "no page at /"),
            ("{}".to_owned(), MANIFEST),
            (format!("[{PAGE}, {PAGE}]"), "twice"),
            (many, "257 files"),
            (" ".repeat(65_537), "too large"),
            (asset("/assets/../x.js", "text/javascript", "text.gz"), "no path"),
            (asset("assets/x.js", "text/javascript", "text.gz"), "no path"),
            (asset("/assets//x.js", "text/javascript", "text.gz"), "no path"),
            (asset("/x.js?", "text/javascript", "text.gz"), "no path"),
            (asset("/x.js", "text/javascript\\r\\nset-cookie: x", "text.gz"), "no content type"),
            (asset("/x.js", "text/javascript", "../index.html.gz"), "no name"),
            (asset("/x.js", "text/javascript", "/etc/passwd"), "no name"),
            (asset("/x.js", "text/javascript", ""), "no name"),
            (asset("/x.js", "text/javascript", ".."), "no name"),
            (asset("/x.js", "text/javascript", "text.gz"), "not compressed"),
            (asset("/x.js", "text/javascript", "missing.gz"), "missing.gz"),
        ] {
            let error = format!("{:#}", read(folder(&list).path()).unwrap_err());
            assert!(error.contains(why), "{why}: {error}");
            assert!(error.contains("node web/build.mjs"), "{error}");
        }
        assert!(format!("{:#}", read(Path::new("/no/such")).unwrap_err()).contains("/no/such"));
    }

    #[test]
    fn what_is_no_file_is_not_read_and_what_is_too_large_is_no_further() {
        let within = folder(&format!("[{PAGE}]"));
        let page = within.path().join("index.html.gz");
        File::options().write(true).open(&page).unwrap().set_len(ALL_MAX + 1).unwrap();
        assert!(format!("{:#}", read(within.path()).unwrap_err()).contains("too large"));
        fs::remove_file(&page).unwrap();
        fs::create_dir(&page).unwrap();
        assert!(format!("{:#}", read(within.path()).unwrap_err()).contains("is no file"));
    }
}
