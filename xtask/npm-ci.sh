#!/bin/sh
# Installs exactly what the lock file of a folder names, unless just that is installed there.
#
#     xtask/npm-ci.sh FOLDER
set -eu
lock=$1/package-lock.json
installed=$1/node_modules/.installed-from
if cmp -s "$lock" "$installed"; then exit; fi
npm ci --no-fund --no-audit --prefix "$1"
cp "$lock" "$installed"
