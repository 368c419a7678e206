//! Pages on which browsers play games from this server.

/// The pages and their files. [`Config::web_pages`](crate::Config::web_pages) serves them.
#[derive(Clone, Debug, Default)]
pub struct WebPages {
    /// The games that are played on them.
    pub games: Vec<WebGame>,
    /// Paths of pages that belong to no game, such as the one of operators.
    pub others: &'static [&'static str],
    /// The pages, and what they load.
    pub files: &'static [WebFile],
}

/// A game with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebGame {
    /// The app of the game's rooms: `/join/CODE` of such a room is the page.
    pub app: &'static str,
    /// The path of its page, `/` or `/arena`. Paths of the server itself come first.
    pub path: &'static str,
}

/// A file of [`WebPages`].
#[derive(Clone, Copy, Debug)]
pub struct WebFile {
    /// The path that it is asked by. A file below `/assets/` never changes: its name has the hash of its content.
    pub path: &'static str,
    /// The `content-type`.
    pub content_type: &'static str,
    /// The content, compressed with gzip.
    pub gzip: &'static [u8],
}

impl WebPages {
    /// The file at a path.
    pub(crate) fn file(&self, path: &str) -> Option<&'static WebFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The page at a path.
    pub(crate) fn page_at(&self, path: &str) -> Option<&'static WebFile> {
        let mut paths = self.games.iter().map(|game| game.path).chain(self.others.iter().copied());
        paths.find(|page| *page == path).and_then(|page| self.file(page))
    }

    /// The page of an app's rooms.
    pub(crate) fn page_of(&self, app: &str) -> Option<&'static WebFile> {
        self.games.iter().find(|game| game.app == app).and_then(|game| self.file(game.path))
    }
}
