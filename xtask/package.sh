#!/bin/sh
# `cargo package` with these arguments, as if for the first time. Cargo takes the packages of an earlier run for
# those of this one, because they have the same names and versions: unpacked ones, and what it compiled of them.
set -eu
registry=${CARGO_HOME:-$HOME/.cargo}/registry
rm -rf "$registry"/src/-*/parlor* "$registry"/cache/-*/parlor*
for deps in "${CARGO_TARGET_DIR:-target}"/*/deps; do
    for built in $(grep -ls 'registry/src/-' "$deps"/parlor*.d || true); do
        rm -rf "$deps/../.fingerprint/$(basename "$built" .d | tr _ -)" "$built"
    done
done
exec cargo package "$@"
