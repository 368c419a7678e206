//! The step that runs the binary `parlor` on networks made of namespaces, with `tests/nat`.

use std::path::Path;

use crate::invocation::Invocation;
use crate::plan::{Level, Missing, Work, need};

/// Builds the binary as the tests do, so that what these built is used again.
pub(crate) fn plan(_: &Path, _: Level) -> Result<Work, Missing> {
    need("ip -V", "network namespaces want `ip`", "apt-get install iproute2")?;
    need("nft -v", "homes behind NATs want `nft`", "apt-get install nftables")?;
    need("conntrack -V", "NATs that forget want `conntrack`", "apt-get install conntrack")?;
    // It fails without root, and where the kernel lacks nftables.
    need(
        "nft list tables",
        "network namespaces and NATs want root, and a kernel with nftables",
        "sudo cargo xtask test --only nat",
    )?;
    let build = Invocation::cargo("build --workspace --all-features --bin parlor");
    Ok(Work::Run(vec![build, Invocation::cargo("run --quiet --package parlor-nat")]))
}
