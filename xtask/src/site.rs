//! The step `site`: makes the references and pictures that the site has, builds its pages, and checks their links. What other
//! steps have made before it is reused.

use std::path::Path;

use crate::invocation::Invocation;
use crate::plan::{Level, Missing, Work, documentation, need};
use crate::sdk::{SERVER, built, installed, need_chromium, npm};

/// Where the site is built.
const OUT: &str = "target/site";

/// The site, whole.
pub(crate) fn plan(root: &Path, _: Level) -> Result<Work, Missing> {
    need_chromium()?;
    need(
        "script --version",
        "there is no `script`, which gives programs a terminal",
        "apt-get install bsdutils",
    )?;
    let [install, build] = built(root)?;
    let mut run = vec![install, build, Invocation::cargo(SERVER)];
    run.extend(documentation());
    run.extend([
        installed("sdk/reference", root)?,
        npm("run build", "sdk/reference", root)?,
        installed("site", root)?,
        npm("test", "site", root)?,
        Invocation::new("node").args("site/build.mjs").args(OUT),
    ]);
    Ok(Work::Run(run))
}
