#!/bin/sh
# Runs a command beside a PostgreSQL server of its own, from the system's packages, and takes the server away again. The command
# finds its address in PARLOR_POSTGRES. The server listens on a socket in its own folder and nowhere else.
#
#     xtask/scratch-postgres.sh cargo test -p parlor-server --test store
set -eu

initdb=$(find /usr/lib/postgresql /usr/local /opt -name initdb 2>/dev/null | sort | tail -n 1)
if [ -z "$initdb" ]; then
    echo "there is no PostgreSQL: apt-get install postgresql" >&2
    exit 1
fi
bin=$(dirname "$initdb")
folder=$(mktemp -d)

# PostgreSQL refuses to run as root.
as_owner() {
    if [ "$(id -u)" = 0 ]; then (cd / && runuser -u postgres -- "$@"); else "$@"; fi
}

stop() {
    as_owner "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 130' INT TERM

if [ "$(id -u)" = 0 ]; then chown postgres "$folder"; fi
chmod 755 "$folder"
as_owner "$bin/initdb" -D "$folder/data" -A trust -U parlor >"$folder/said" 2>&1 || { cat "$folder/said" >&2; exit 1; }
as_owner "$bin/pg_ctl" -D "$folder/data" -o "-k $folder -c listen_addresses=" -l "$folder/data/said" -w start >/dev/null ||
    { cat "$folder/data/said" >&2; exit 1; }
PARLOR_POSTGRES="postgres://parlor@$(printf %s "$folder" | sed 's,/,%2F,g')/postgres"
export PARLOR_POSTGRES
"$@"
