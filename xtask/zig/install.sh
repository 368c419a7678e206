#!/bin/sh
# Puts cargo-zigbuild and Zig into a folder, as requirements.txt pins them by version and hash. They compile and link static programs for
# machines with musl, other processors included, and bring musl and the library that unwinds the stack.
#
#     sh xtask/zig/install.sh target/zig
set -eu

wanted=$(dirname "$0")/requirements.txt
if cmp -s "$wanted" "$1/installed.txt"; then exit 0; fi
rm -rf "$1"
python3 -m venv "$1"
"$1/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r "$wanted"
cp "$wanted" "$1/installed.txt"
