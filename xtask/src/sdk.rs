//! The steps of TypeScript: `sdk` builds and tests the SDK in Node, `web` builds and plays the present pages, `browser`
//! plays the pages of `web/dist`, which the server embeds, and pages of the SDK, `packaging` installs the packed SDK into
//! apps. All need what the step `wasm` builds.

use std::path::Path;

use crate::invocation::Invocation;
use crate::plan::{Level, Missing, Work, need};
use crate::wasm::FILE;

/// The server that the tests play on.
pub(crate) const SERVER: &str = "build --workspace --all-features --bin parlor";

/// Types, unit tests, the reference, the package with its sizes, and rooms in Node against the server.
pub(crate) fn plan(root: &Path, _: Level) -> Result<Work, Missing> {
    let [install, build] = built(root)?;
    let (test, play) = (npm("test", "sdk/ts", root)?, npm("run integration", "sdk/ts", root)?);
    let tools = installed("sdk/reference", root)?;
    let reference = npm("run build", "sdk/reference", root)?;
    Ok(Work::Run(vec![install, test, tools, reference, build, Invocation::cargo(SERVER), play]))
}

/// The pages of `web`, built anew but not into `web/dist`: types, unit tests and sizes; then they are played as those of
/// `web/dist` are.
pub(crate) fn plan_web(root: &Path, _: Level) -> Result<Work, Missing> {
    need_chromium()?;
    let [install, build] = built(root)?;
    Ok(Work::Run(vec![
        install,
        build,
        installed("web", root)?,
        npm("test", "web", root)?,
        Invocation::new("node").args("web/build.mjs target/web"),
        installed("tests/browser", root)?,
        Invocation::cargo(SERVER),
        npm("run pages", "tests/browser", root)?
            .env("PARLOR_PAGES", &root.join("target/web").to_string_lossy()),
    ]))
}

/// Pages of the built SDK in the Chromium of the system.
pub(crate) fn plan_browser(root: &Path, _: Level) -> Result<Work, Missing> {
    need_chromium()?;
    played(Invocation::cargo(SERVER), npm("test", "tests/browser", root)?, root)
}

/// The packed SDK in an app of each bundler and runtime, and the games of `npm create parlor`: the most used ones, or all.
pub(crate) fn plan_packaging(root: &Path, level: Level) -> Result<Work, Missing> {
    need_chromium()?;
    let level = if level == Level::Weekly { "weekly" } else { "all" };
    let play = Invocation::new("node")
        .args("--test --test-force-exit --test-concurrency=1")
        .args("tests/packaging/packaging.test.mjs tests/packaging/templates.test.mjs");
    played(Invocation::cargo(SERVER), play.env("PACKAGING_LEVEL", level), root)
}

/// A smoke test in Firefox ESR.
pub(crate) fn plan_firefox(root: &Path, _: Level) -> Result<Work, Missing> {
    need("firefox-esr --version", "there is no Firefox", "apt-get install firefox-esr")?;
    played(Invocation::cargo(SERVER), npm("run firefox", "tests/browser", root)?, root)
}

/// The figures of pages in Chromium with a server as users have it. They are printed, not judged: a machine with
/// other work has others.
pub(crate) fn plan_measure(root: &Path, _: Level) -> Result<Work, Missing> {
    need_chromium()?;
    let server = Invocation::cargo("build --release -p parlor-cli");
    played(server, npm("run measure", "tests/browser", root)?, root)
}

/// Builds the SDK and a server, and then plays.
fn played(server: Invocation, play: Invocation, root: &Path) -> Result<Work, Missing> {
    let [install, build] = built(root)?;
    Ok(Work::Run(vec![install, build, installed("tests/browser", root)?, server, play]))
}

pub(crate) fn need_chromium() -> Result<(), Missing> {
    need("chromium --version", "there is no Chromium", "apt-get install chromium")
}

/// Installs the tools of the SDK, and builds it.
pub(crate) fn built(root: &Path) -> Result<[Invocation; 2], Missing> {
    Ok([installed("sdk/ts", root)?, Invocation::new("node").args("sdk/ts/build.mjs")])
}

/// Installs what a folder's lock file names.
pub(crate) fn installed(folder: &str, root: &Path) -> Result<Invocation, Missing> {
    need_npm(root)?;
    Ok(Invocation::new("sh").args("xtask/npm-ci.sh").args(folder))
}

/// A call of npm in `folder`.
pub(crate) fn npm(args: &str, folder: &str, root: &Path) -> Result<Invocation, Missing> {
    need_npm(root)?;
    Ok(Invocation::new("npm").args(args).args("--prefix").args(folder))
}

/// Node and npm, and the WebAssembly, which everything has that is made with them.
fn need_npm(root: &Path) -> Result<(), Missing> {
    need("node --version", "Node is not installed", "apt-get install nodejs npm")?;
    need("npm --version", "npm is not installed", "apt-get install npm")?;
    if !root.join(FILE).exists() {
        let hint = "`cargo xtask web`; with --all the step `wasm` builds it before".to_owned();
        return Err(Missing { why: format!("there is no {FILE}"), hint });
    }
    Ok(())
}
