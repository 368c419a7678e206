#!/usr/bin/env python3
"""Installs what `cargo xtask dist` made, each into a root file system without anything of Parlor, and plays it: a host, and a guest
who joins by the code that the host shows. It needs root: what it starts is in network, mount and process namespaces of its
own. Usage: play.py DIST"""

import base64
import hashlib
import http.server
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from players import Painter, Printer, until

# The folders that a root file system needs for programs which are not static.
SYSTEM = ["bin", "lib", "lib64", "usr"]
REGISTRY_PORT = 4873


def run(*words, **more):
    """Runs a program; its output is shown if it fails."""
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        raise SystemExit(f"{' '.join(str(word) for word in words)}: {done.returncode}\n{done.stdout}")
    return done.stdout


# The names of machines in files' names.
MACHINES = {"x86_64": r"x86_64|amd64|x64", "aarch64": r"aarch64|arm64"}
HERE = platform.machine()
OTHER = next(machine for machine in MACHINES if machine != HERE)


def only(folder, pattern, machine=HERE):
    """The one file of a folder with such a name, for a machine."""
    found = [path for path in sorted(folder.glob(pattern)) if re.search(MACHINES[machine], path.name)]
    if len(found) != 1:
        raise SystemExit(f"{folder} has {len(found)} files {pattern}")
    return found[0]


def root_in(folder, name, with_system=False):
    """Makes a root file system with what the kernel gives, and with the system's programs if they are asked for."""
    root = folder / name
    for part in ["proc", "dev/pts", "tmp", "root"]:
        (root / part).mkdir(parents=True)
    run("mount", "-t", "proc", "proc", root / "proc")
    run("mount", "--bind", "/dev/pts", root / "dev/pts")
    if with_system:
        (root / "etc").mkdir()
        for part in SYSTEM:
            (root / part).mkdir()
            run("mount", "--bind", "-o", "ro", f"/{part}", root / part)
        for node in ["null", "urandom"]:
            (root / "dev" / node).touch()
            run("mount", "--bind", f"/dev/{node}", root / "dev" / node)
    return root


def environment(**more):
    return {"HOME": "/root", "TERM": "xterm-256color", "PATH": "/usr/local/bin:/usr/bin:/bin", **more}


def play(what, began, root, program, *before, env=None, host_args=()):
    """Hosts a room, joins it, and tells how long it took since `began`."""
    env = env or environment()
    host = Painter(program, [*before, "play", "--name", "Ada", *host_args], env, root)
    code = until([host], "", lambda screen: re.search(r"parlor play --join (\w{4,})", screen))[1]
    guest = Painter(program, [*before, "play", "--name", "Bo", "--join", code, *host_args], env, root)
    until([guest, host], "", lambda screen: re.search(r"players 2", screen) and "Ada" in screen)
    took = time.monotonic() - began
    until([host, guest], "", lambda screen: re.search(r"players 2", screen) and "Bo" in screen)
    left = guest.leave(), host.leave()
    if left != (0, 0):
        raise SystemExit(f"{what}: the guest ended with {left[0]}, the host with {left[1]}")
    print(f"{what}: room {code} hosted and joined; the guest had its first state {took:.1f} s after the file", flush=True)


def unpack(dist, root, machine=HERE):
    with tarfile.open(only(dist, "parlor-*-linux-musl.tar.gz", machine)) as archive:
        archive.extractall(root / "opt")
    return only(root / "opt", "parlor-*", machine)


def try_archive(dist, folder):
    root = root_in(folder, "archive")
    began = time.monotonic()
    unpacked = unpack(dist, root)
    play("archive", began, root, f"/opt/{unpacked.name}/parlor")
    for name in ["THIRD-PARTY-LICENSES", "man/parlor-serve.1", "completions/bash/parlor", "deploy/parlor.service"]:
        if not (unpacked / name).stat().st_size:
            raise SystemExit(f"{name} is empty")
    run("bash", "-n", unpacked / "completions/bash/parlor")


def try_other(dist, folder):
    """The archive for another machine, whose instructions a program carries out. It has no terminals, so both play without."""
    root = root_in(folder, "other")
    shutil.copy(shutil.which(f"qemu-{OTHER}-static"), root / "emulator")
    began = time.monotonic()
    words = [f"/opt/{unpack(dist, root, OTHER).name}/parlor", "play", "--headless"]
    host = Printer("/emulator", [*words, "--name", "Ada"], environment(), root)
    code = until([host], "", lambda said: re.search(r"room (\w{4,})", said))[1]
    guest = ["/emulator", *words, "--name", "Bo", "--join", code, "--updates", "30", "--json"]
    report = json.loads(run("/usr/sbin/chroot", root, *guest, env=environment()).splitlines()[-1])
    if report["members_seen"] != {"0": "Ada", "1": "Bo"} or report["updates_decoded"] < 30:
        raise SystemExit(f"archive for {OTHER}: {report}")
    took = time.monotonic() - began
    host.end()
    print(f"archive for {OTHER}: room {code} hosted and joined; the guest had 30 states {took:.1f} s after the file", flush=True)


def try_debian(dist, folder):
    """dpkg installs it into a system in which nothing else is installed: it depends on nothing, and runs no scripts."""
    root = root_in(folder, "debian")
    for part in ["info", "updates"]:
        (root / "var/lib/dpkg" / part).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    began = time.monotonic()
    run("dpkg", f"--root={root}", "--install", only(dist, "parlor_*.deb"))
    play("Debian package", began, root, "/usr/bin/parlor")
    unit = (root / "lib/systemd/system/parlor.service").read_text()
    program, config = re.search(r"ExecStart=(\S+) serve --config (\S+)", unit).groups()
    if not (root / program[1:]).exists():
        raise SystemExit(f"the unit starts {program}, which is not there")
    server = Printer(program, ["serve", "--config", config, "--data", "/tmp/data"], environment(), root)
    until([server], "", lambda printed: re.search(r"7700", printed))
    server.end()
    run("dpkg", f"--root={root}", "--purge", "parlor")
    left = [str(path.relative_to(root)) for path in root.rglob("*parlor*") if not re.search(r"proc|tmp|root", str(path.relative_to(root)))]
    if left:
        raise SystemExit(f"the removed package leaves {left}")


class Registry(http.server.BaseHTTPRequestHandler):
    """What npm asks a registry for, of packages in a folder."""

    def do_GET(self):
        name = self.path.strip("/").split("?")[0]
        if name in self.server.packages:
            self.answer(json.dumps(self.server.packages[name]).encode(), "application/json")
        elif (self.server.folder / name).is_file() and name.endswith(".tgz"):
            self.answer((self.server.folder / name).read_bytes(), "application/octet-stream")
        else:
            self.send_error(404)

    def answer(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def registry_of(dist):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", REGISTRY_PORT), Registry)
    server.folder, server.packages = dist, {}
    for file in dist.glob("*.tgz"):
        with tarfile.open(file) as package:
            manifest = json.load(package.extractfile("package/package.json"))
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()
        manifest["dist"] = {"tarball": f"http://127.0.0.1:{REGISTRY_PORT}/{file.name}", "integrity": integrity}
        version = manifest["version"]
        server.packages[manifest["name"]] = {
            "name": manifest["name"],
            "dist-tags": {"latest": version},
            "versions": {version: manifest},
        }
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def try_npm(dist, folder):
    """npx installs it from a registry on this machine, in an empty home."""
    root = root_in(folder, "npm", with_system=True)
    registry = registry_of(dist)
    npx = shutil.which("npx")
    env = environment(npm_config_registry=f"http://127.0.0.1:{REGISTRY_PORT}", npm_config_update_notifier="false")
    play("npm", time.monotonic(), root, npx, "--yes", "parlor", env=env)
    registry.shutdown()


def try_container(dist, folder):
    """buildah makes the image without a daemon; the server runs in its root file system, as its user."""
    context = folder / "context"
    context.mkdir()
    unpacked = unpack(dist, context)
    store = ["--root", folder / "containers", "--runroot", folder / "run", "--storage-driver", "vfs"]
    build = ["build", "--isolation", "chroot", "--format", "docker", "--tag", "parlor", "--file", unpacked / "deploy/Containerfile"]
    run("buildah", *store, *build, unpacked)
    container = run("buildah", *store, "from", "parlor").strip().splitlines()[-1]
    root = Path(run("buildah", *store, "mount", container).strip().splitlines()[-1])
    image = json.loads(run("buildah", *store, "inspect", "--type", "image", "parlor"))["Docker"]["config"]
    env = dict(variable.split("=", 1) for variable in image["Env"])
    as_user = [shutil.which("chroot"), f"--userspec={image['User']}", str(root)]
    is_healthy = [*as_user, *image["Healthcheck"]["Test"][1:]]
    (root / "proc").mkdir(exist_ok=True)
    run("mount", "-t", "proc", "proc", root / "proc")
    began = time.monotonic()
    server = Printer(as_user[0], [*as_user[1:], *image["Entrypoint"], *image["Cmd"]], env)
    address = until([server], "", lambda printed: re.search(r"PARLOR_SERVER=(127\S+#\w+)", printed))[1]
    for _ in range(100):
        health = subprocess.run(is_healthy, capture_output=True, text=True, env=env)
        if health.returncode == 0:
            break
        time.sleep(0.1)
    else:
        raise SystemExit(f"the container is never healthy: {health.stdout}{health.stderr}")
    player = root_in(folder, "player")
    play("container", began, player, f"/opt/{unpack(dist, player).name}/parlor", host_args=["--server", address])
    if not any((root / "data").iterdir()):
        raise SystemExit("the container keeps nothing in /data")
    if code := server.end():
        raise SystemExit(f"the container ended with {code}: {server.shown()}")
    if subprocess.run(is_healthy, capture_output=True, env=env).returncode == 0:
        raise SystemExit("a container that has ended is healthy")


def main():
    dist = Path(sys.argv[1]).resolve()
    if "--inside" not in sys.argv:
        again = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--propagation", "private", sys.executable, __file__, dist]
        raise SystemExit(subprocess.run(["unshare", *again, "--inside"]).returncode)
    run("ip", "link", "set", "lo", "up")
    run("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=dist)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # The mounts end with this namespace; what they show must not be removed through them.
        try:
            attempts = [try_archive, try_debian, try_npm, try_container]
            if list(dist.glob(f"parlor-*-{OTHER}-*")):
                attempts.append(try_other)
            for attempt in attempts:
                attempt(dist, Path(folder))
        finally:
            mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
            for mount in sorted((mount for mount in mounts if mount.startswith(folder)), reverse=True):
                run("umount", mount)


main()
