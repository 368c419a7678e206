#!/bin/sh
# Runs a command beside a PostgreSQL server of its own, from the system's packages, and takes the server away again. The command
# finds its address in PARLOR_POSTGRES: a socket in the server's own folder. Over TCP the server is at PARLOR_POSTGRES_TLS, with TLS
# alone and on this machine alone; PARLOR_POSTGRES_ROOTS is the certificate that vouches for it, by the name localhost.
#
# PARLOR_POSTGRES_RESTART is a command that restarts the server as after a crash.
#
#     xtask/scratch-postgres.sh cargo test -p parlor-services --test store
set -eu

initdb=$(find /usr/lib/postgresql /usr/local /opt -name initdb 2>/dev/null | sort | tail -n 1)
if [ -z "$initdb" ]; then
    echo "there is no PostgreSQL: apt-get install postgresql" >&2
    exit 1
fi
bin=$(dirname "$initdb")
here=$(dirname "$0")
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
sh "$here/localhost-certificate.sh" "$folder/data/server.key" "$folder/data/server.crt" 2>>"$folder/said" ||
    { cat "$folder/said" >&2; exit 1; }
if [ "$(id -u)" = 0 ]; then chown postgres "$folder/data/server.key" "$folder/data/server.crt"; fi
as_owner sh -c "echo 'hostnossl all all all reject' | cat - '$folder/data/pg_hba.conf' >'$folder/data/hba'"

# A port may be somebody else's.
for _ in 1 2 3 4 5 6 7 8; do
    port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 12000))
    settings="-k $folder -p $port -c listen_addresses=127.0.0.1 -c ssl=on -c hba_file=$folder/data/hba"
    if as_owner "$bin/pg_ctl" -D "$folder/data" -o "$settings" -l "$folder/data/said" -w start >/dev/null; then
        started=yes
        break
    fi
done
[ -n "${started:-}" ] || { cat "$folder/data/said" >&2; exit 1; }
PARLOR_POSTGRES="postgres://parlor@$(printf %s "$folder" | sed 's,/,%2F,g'):$port/postgres"
PARLOR_POSTGRES_TLS="postgres://parlor@localhost:$port/postgres"
PARLOR_POSTGRES_ROOTS="$folder/roots"
cp "$folder/data/server.crt" "$PARLOR_POSTGRES_ROOTS"
export PARLOR_POSTGRES_TLS PARLOR_POSTGRES_ROOTS
PARLOR_POSTGRES_RESTART="$bin/pg_ctl -D $folder/data -m immediate -w restart -l $folder/data/said"
if [ "$(id -u)" = 0 ]; then PARLOR_POSTGRES_RESTART="cd / && runuser -u postgres -- $PARLOR_POSTGRES_RESTART"; fi
export PARLOR_POSTGRES PARLOR_POSTGRES_RESTART
"$@"
