#!/bin/sh
# Compares the crates that are published with the last version that has a tag.
set -eu
if ! tag=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null); then
    echo "no version has a tag yet: there is nothing to compare with"
    exit
fi
exec cargo semver-checks --workspace --baseline-rev "$tag"
