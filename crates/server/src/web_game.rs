//! A game that browsers play from this server.

/// A page with its files. [`Config::web_game`](crate::Config::web_game) serves it.
#[derive(Clone, Copy, Debug)]
pub struct WebGame {
    /// The app of the game's rooms: `/join/CODE` of such a room is the page.
    pub app: &'static str,
    /// The page at `/`, and its files.
    pub files: &'static [WebFile],
}

/// A file of a [`WebGame`].
#[derive(Clone, Copy, Debug)]
pub struct WebFile {
    /// The path that it is asked by. A file below `/assets/` never changes: its name has the hash of its content.
    pub path: &'static str,
    /// The `content-type`.
    pub content_type: &'static str,
    /// The content, compressed with gzip.
    pub gzip: &'static [u8],
}

impl WebGame {
    /// The page.
    pub(crate) fn page(&self) -> Option<&'static WebFile> {
        self.files.iter().find(|file| file.path == "/")
    }
}
