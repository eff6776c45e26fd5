#!/usr/bin/env bash
#
# Runs every test with the race detector on: ./test.sh
# Arguments go to go test: ./test.sh -run Kick ./local
#
# Needs Go and a C compiler; what talks to Redis needs redis-server, and the
# archive is tested with PostgreSQL and MariaDB. On Debian and its kin, as root,
# what is missing is installed first.

set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"

say() { printf 'test.sh: %s\n' "$*" >&2; }

have() { command -v -- "$1" >/dev/null 2>&1; }

compiler() {
    local command
    command=$(go env CC)
    have "${command%% *}"
}

# install installs Debian packages without starting the services in them.
install() (
    export DEBIAN_FRONTEND=noninteractive
    policy=/usr/sbin/policy-rc.d
    if [[ ! -e $policy ]]; then
        trap 'rm -f -- "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    apt-get update -qq </dev/null &&
        apt-get install -qq -y --no-install-recommends "$@" </dev/null >/dev/null
)

postgres() { have postgres || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null; }

mariadb() { have mariadbd || [[ -x /usr/sbin/mariadbd ]]; }

prepare() {
    local missing=()
    compiler || missing+=(gcc libc6-dev)
    have redis-server || missing+=(redis-server)
    postgres || missing+=(postgresql)
    mariadb || missing+=(mariadb-server)
    ((${#missing[@]})) || return 0

    if ((EUID == 0)) && have apt-get; then
        say "installing ${missing[*]}"
        install "${missing[@]}" || say "could not install ${missing[*]}"
    fi
    compiler || say "no C compiler: the race detector needs one"
    have redis-server || say "no redis-server: what needs one cannot be tested here"
    postgres || say "no PostgreSQL: the archive cannot be tested with it here"
    mariadb || say "no MariaDB: the archive cannot be tested with it here"
}

# named tells whether an argument names packages of its own.
named() {
    local argument
    for argument; do
        case $argument in
        . | ./* | github.com/rollcall/rollcall*) return 0 ;;
        esac
    done
    return 1
}

prepare
named "$@" || set -- ./... "$@"

began=$SECONDS
if go test -race -p 2 -timeout 12m "$@"; then
    say "PASSED in $((SECONDS - began)) s"
else
    status=$?
    say "FAILED after $((SECONDS - began)) s"
    exit "$status"
fi
