#!/bin/sh
# Makes a Python environment in a folder, with the programs that a file pins by version and hash. A folder that has them is left alone.
#
#     sh xtask/pinned.sh xtask/zig/requirements.txt target/zig
set -eu

if cmp -s "$1" "$2/installed.txt"; then exit 0; fi
rm -rf "$2"
python3 -m venv "$2"
"$2/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r "$1"
cp "$1" "$2/installed.txt"
