#!/bin/sh
# Puts Godot 4 of Debian unstable into a folder, with the libraries that it loads, and a program FOLDER/godot that starts it without a
# screen. Nothing of the system changes: older releases of Debian have no Godot 4.
#
#     sh xtask/godot/install.sh target/godot
set -eu

folder=$(mkdir -p "$1" && cd "$1" && pwd)
if [ -x "$folder/godot" ] && "$folder/godot" --headless --version >/dev/null 2>&1; then exit 0; fi
command -v apt-get >/dev/null || { echo "there is no apt-get: install Godot 4 by hand, and set GODOT to its path" >&2; exit 1; }

apt=$folder/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/empty"
: >"$apt/status"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keys] http://deb.debian.org/debian unstable main" >"$apt/sources.list"
apt_get() {
    apt-get -q -q -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts="$apt/empty" -o Dir::State::lists="$apt/lists" \
        -o Dir::Cache="$apt/cache" -o Dir::State::status="$apt/status" -o APT::Install-Recommends=false -o Acquire::Languages=none \
        -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o APT::Sandbox::User=root "$@"
}

apt_get update
# What draws on a screen is half of it, and without a screen nothing loads it.
packages=$(apt_get install --print-uris godot | sed "s/^'[^']*' \([^_]*\)_.*/\1/" | grep -Ev '^(mesa-|libllvm|libz3|libgl1-mesa|dbus|perl)')
(cd "$apt/cache/archives" && apt_get download $packages)
mkdir -p "$folder/root"
for package in "$apt"/cache/archives/*.deb; do dpkg-deb --extract "$package" "$folder/root"; done
rm -rf "$apt"

# Its own loader and C library: those of the system are older.
cat >"$folder/godot" <<'PROGRAM'
#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/root/usr
machine=$root/lib/$(uname -m)-linux-gnu
for loader in "$machine"/ld-linux*.so.* "$root"/lib/ld-linux*.so.*; do [ -e "$loader" ] && break; done
exec "$loader" --library-path "$machine:$machine/pulseaudio" "$root/bin/godot" "$@"
PROGRAM
chmod +x "$folder/godot"
"$folder/godot" --headless --version
