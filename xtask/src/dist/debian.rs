//! The Debian package: the binary, its manual and completions, and the unit, which the operator enables.

use std::path::Path;

use super::target::Target;
use super::{Release, archive, files};
use crate::invocation::Invocation;
use crate::process::Failure;

/// Where Debian's shells look for completions, in the order of [`archive::SHELLS`].
const COMPLETIONS: [&str; 3] = [
    "usr/share/bash-completion/completions",
    "usr/share/zsh/vendor-completions",
    "usr/share/fish/vendor_completions.d",
];

/// Makes the package of what was made for the archive.
pub(super) fn pack(release: &Release, target: Target, unpacked: &Path) -> Result<(), Failure> {
    let Release { out, version, time, .. } = release;
    let folder = out.join("unpacked").join(format!("debian-{}", target.debian));
    files::copy(&unpacked.join("parlor"), &folder.join("usr/bin/parlor"), 0o755)?;
    let unit = files::read(&unpacked.join("deploy/parlor.service"))?;
    let unit = unit.replace("/usr/local/bin/parlor", "/usr/bin/parlor");
    files::write(&folder.join("lib/systemd/system/parlor.service"), unit.as_bytes())?;
    files::copy(&unpacked.join("deploy/server.toml"), &folder.join("etc/parlor/server.toml"), 0o644)?;
    let doc = folder.join("usr/share/doc/parlor");
    files::write(&doc.join("copyright"), copyright(unpacked)?.as_bytes())?;
    for name in ["alerts.yml", "alerts-cluster.yml", "grafana.json"] {
        files::copy(&unpacked.join("deploy").join(name), &doc.join(name), 0o644)?;
    }
    files::copy(&unpacked.join("CHANGELOG.md"), &doc.join("changelog"), 0o644)?;
    for ((shell, file), there) in archive::SHELLS.into_iter().zip(COMPLETIONS) {
        let script = unpacked.join("completions").join(shell).join(file);
        files::copy(&script, &folder.join(there).join(file), 0o644)?;
    }
    let pages = folder.join("usr/share/man/man1");
    files::copy_all(&unpacked.join("man"), &pages)?;
    let mut texts = files::entries(&pages)?;
    texts.push(doc.join("changelog"));
    for text in texts {
        files::output(&Invocation::new("gzip").args("-9 --no-name").args(&text.to_string_lossy()), out)?;
    }
    files::write(&folder.join("DEBIAN/conffiles"), b"/etc/parlor/server.toml\n")?;
    files::write(&folder.join("DEBIAN/control"), control(version, target).as_bytes())?;
    let package = out.join(format!("parlor_{version}_{}.deb", target.debian));
    let call =
        Invocation::new("dpkg-deb").args("--root-owner-group -Zxz --build").env("SOURCE_DATE_EPOCH", time);
    let call = call.args(&folder.to_string_lossy()).args(&package.to_string_lossy());
    files::output(&call, out).map(drop)
}

fn copyright(unpacked: &Path) -> Result<String, Failure> {
    let mit = files::read(&unpacked.join("LICENSE-MIT"))?;
    let others = files::read(&unpacked.join("THIRD-PARTY-LICENSES"))?;
    Ok(format!(
        "Parlor is under MIT or Apache-2.0, as you choose. Apache-2.0 is in /usr/share/common-licenses/Apache-2.0;\n\
         MIT is:\n\n{mit}\n{others}"
    ))
}

/// It is static, so it depends on nothing. It has no scripts: the unit runs when somebody enables it.
fn control(version: &str, target: Target) -> String {
    format!(
        "Package: parlor\n\
         Version: {version}\n\
         Architecture: {}\n\
         Maintainer: The Parlor developers <parlor@localhost>\n\
         Section: games\n\
         Priority: optional\n\
         Description: realtime multiplayer for any game: rooms with a code\n \
         A server for rooms of games over QUIC, WebTransport and WebSocket on one port, with accounts,\n \
         boards, lobbies and a matchmaker; and a terminal game to try it: parlor play.\n \
         .\n \
         The server is not started: set it up in /etc/parlor/server.toml, then\n \
         systemctl enable --now parlor.\n",
        target.debian
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_the_package_has_a_line_for_each_field() {
        let control = control("1.2.3", super::super::target::TARGETS[1]);
        assert!(control.starts_with("Package: parlor\nVersion: 1.2.3\nArchitecture: arm64\n"), "{control}");
        let is_line = |line: &str| line.starts_with(' ') || line.split_once(": ").is_some();
        assert!(control.lines().all(is_line), "{control}");
    }
}
