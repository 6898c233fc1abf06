#!/bin/sh
# Install PostgreSQL with PostGIS, which the tests in tests/stores start for themselves, where this needs no password:
# Debian or Ubuntu, as root or with sudo. SHOAL_SETUP=no leaves it out. Exits with 0 if they are there.
set -u

there() {
    ls /usr/lib/postgresql/*/bin/initdb /usr/share/postgresql/*/extension/postgis.control >/dev/null 2>&1
}

later() {
    echo "PostgreSQL with PostGIS is not there ($1): the tests that need it will be skipped" >&2
    exit 1
}

there && exit 0
[ "${SHOAL_SETUP:-}" != no ] || later "SHOAL_SETUP=no"
command -v apt-get >/dev/null || later "no apt-get"
if [ "$(id -u)" = 0 ]; then
    root=env
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    root="sudo -n env"
else
    later "not root, and sudo asks for a password"
fi

newest() {
    apt-cache search --names-only '^postgresql-[0-9]+-postgis-3$' | cut -d' ' -f1 | sort -V | tail -n 1
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT

update() {
    timeout 120 $root apt-get update -qq >"$log" 2>&1
}

install() {
    package=$(newest)
    [ -n "$package" ] || later "apt knows no postgresql-…-postgis-3"
    timeout 600 $root DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
        "${package%-postgis-3}" "$package" >>"$log" 2>&1
}

[ -n "$(newest)" ] || update
install || { update && install; }  # lists of packages grow old
there || { tail -n 5 "$log" >&2; later "the installation failed"; }
