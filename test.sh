#!/usr/bin/env bash
#
# Runs all tests but the end-to-end tests, and those in which goroutines meet with the race
# detector:
# ./test.sh
#
# Runs the end-to-end tests. The real program is driven by browsers and by every command of
# the documentation, put behind proxies, killed, and tortured for a minute on each engine:
# ./test.sh -e2e
#
# Random and repeated work has a budget of time; of the ways in which an engine may be
# run or set up one has the whole conformance suite, and the others have parts of it.
# -long, also beside -e2e, makes the budgets twenty times as long, and gives every way all
# cases:
# ./test.sh -long
#
# Other arguments go to go test. With packages or -run among them there is one run,
# as go test would do it: ./test.sh -race ./local. A pattern of -run without a slash
# also chooses cases of the conformance suite, whatever the case of its letters:
# ./test.sh -run Kick ./local
#
# Needs Go and a C compiler; what talks to Redis needs redis-server, and the archive is
# tested with PostgreSQL and MariaDB. The end-to-end tests need more, such as Chromium and
# nginx, and programs from npm, which are fetched once. On Debian and its kin, as
# root, what is missing is installed first.

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

# Chromium without windows is enough, and takes less of the processor. Not every system has a
# package of it.
browser() { have chromium-headless-shell || have chromium; }

mariadb() { have mariadbd || [[ -x /usr/sbin/mariadbd ]]; }

# prepare installs what is missing for the run, and says what cannot be had.
prepare() {
    local end_to_end=0 missing=()
    if reaches_end_to_end "$@"; then end_to_end=1; fi
    compiler || missing+=(gcc libc6-dev)
    have redis-server || missing+=(redis-server)
    postgres || missing+=(postgresql)
    mariadb || missing+=(mariadb-server)
    have python3 || missing+=(python3)
    have promtool || missing+=(prometheus)
    have systemd-analyze || missing+=(systemd)
    have script || missing+=(bsdutils)
    have curl || missing+=(curl ca-certificates)
    if ((end_to_end)); then
        have npm || missing+=(nodejs npm)
        have java || missing+=(default-jdk-headless)
        have php || missing+=(php-cli)
        have nginx || missing+=(nginx-light)
        have caddy || missing+=(caddy)
        { have podman && have runc && have crun; } || missing+=(podman runc crun)
    fi

    if ((EUID == 0)) && have apt-get; then
        if ((${#missing[@]})); then
            say "installing ${missing[*]}"
            install "${missing[@]}" || say "could not install ${missing[*]}"
        fi
        if ((end_to_end)) && ! browser; then
            say "installing Chromium"
            install chromium-headless-shell || install chromium || say "could not install Chromium"
        fi
    fi
    compiler || say "no C compiler: the race detector needs one"
    have redis-server || say "no redis-server: what needs one cannot be tested here"
    postgres || say "no PostgreSQL: the archive cannot be tested with it here"
    mariadb || say "no MariaDB: the archive cannot be tested with it here"
    have promtool || say "no promtool: alerts are not tested here"
    have systemd-analyze || say "no systemd: the unit is not tested here"
    have script || say "no script of util-linux: rollcall top is not tested on a terminal here"
    if ((!end_to_end)); then return; fi
    browser || say "no Chromium: pages are not tested in a browser here"
    have nginx && have caddy || say "no nginx or no caddy: what runs behind them is not tested here"
    have java && have php || say "no java or no php: the programs of the documentation are not all run here"
    have podman || say "no podman: the image is not run here"
    have npm || say "no npm: the OpenAPI document is not tested with linters and a generated client here"
}

# Packages run in this order: those that take longest first, so that no core is
# left idle at the end.
everything=(./redis ./archive ./local ./cmd/rollcall ./httpapi ./...)

# The end-to-end tests have a run of their own: two packages, and of cmd/rollcall the tests
# that move a whole store, or a system built by hand.
endToEnd=(./e2e ./e2e/torture)
endToEndTests='^(TestEachLayoutIsTakenOverAndGivenBack|TestAMoveThatIsKilledGoesOn)$'

# The race detector makes code five to ten times as slow. It watches whole packages
# that are called by many at once, and of those that start goroutines of their own the
# tests beside which others run. What it watches does not run without it as well.
meeting=(./loadgen ./internal/journal ./internal/faultproxy ./internal/coldcache ./internal/fanout ./middleware ./udpbeat ./respapi)
starting=(./httpapi ./local ./redis ./archive ./history ./transfer ./internal/directory)

# The tests of these start their goroutines by what they test: it watches all but the
# sequential ones.
selfStarting=(./webhook)

# sequential are the tests of those packages that it does not watch.
sequential=(
    # The engine's answers, one command at a time. Groups of them in which events
    # are followed meanwhile are watched: see below.
    TestConformance TestModel 'TestVisitors$' TestCollegeMsg
    # Damage, sizes and codecs of stores that nobody else uses.
    TestCheck TestAFlippedByte TestEveryByteFlippedOrCut TestMarksInBulk TestNoKeyIsLeftBehind TestScanIsBounded
    TestWritesResumeOnARealDisk TestAFullDiskRefusesWrites TestAnIndexOfSlots
    # Each kind of write of a disk that fails: see watchedCases for those of the journal.
    TestWritesResumeWhenTheDiskIsWellAgain
    # What a run of the archive leaves at each of its steps.
    BeforeEachStep DuringEachStep TestRestore TogetherAreTheTruth StaysAway
    TestMerge TestTheDatabaseGoesAwayInARun TestHostileUsers TestOffloads
    # What servers and files that fail leave, also asked by one caller.
    TestTLS TestFailover TestAKilled TestAServerKilled TestWithTheServerDown TestALazyArchive
    TestTransfer
    # Hours and days of a webhook with thousands of messages, by a clock that leaps, one step
    # after the other. Rooms that are full, receivers that are away and servers that die are
    # watched too, with fewer messages.
    TestNothingIsGivenUpWhileAReceiverThatIsFullIsAway TestWhenTheParkedSetIsFull
    TestAReplayDeliversWhatIsKept TestFiveDaysOfNothing TestUsersWhoFillTheRoomTogether
    TestAReceiverThatIsDownForEightyHours
    # What imports what; what Redis spends, one command at a time; and what is no test.
    TestImportsRunOneWay TestViolations TestNoScriptTakesLong TestMain
)

# goroutines names the functions of a package's tests that start goroutines or an HTTP
# server, themselves or by a function whose name they have.
goroutines() {
    cat -- "$1"/*_test.go | awk '
        /^func / {
            name = $0
            sub(/^func (\([^)]*\) )?/, "", name)
            sub(/[^A-Za-z0-9_].*/, "", name)
            inside = 1
        }
        inside { sub(/[ \t]\/\/ .*/, ""); body[name] = body[name] $0 "\n" }
        /^}/ || /^func .*}$/ { inside = 0 }
        END {
            for (name in body) if (body[name] ~ /\.Go\(|httptest\.NewServer\(|[^A-Za-z0-9_]go (func|[a-z])/) starts[name]
            do {
                more = 0
                for (name in body) {
                    if (name in starts) continue
                    for (other in starts) {
                        if (body[name] ~ ("[^A-Za-z0-9_]" other "[^A-Za-z0-9_:]")) {
                            starts[name]
                            more = 1
                            break
                        }
                    }
                }
            } while (more)
            for (name in starts) print name
        }'
}

# watched lists the tests that the race detector watches: those that start goroutines,
# and of the imports, which do so themselves, two: see watchedCases for more.
watched() {
    local package names
    names=$(
        for package in "${starting[@]}"; do
            goroutines "$package" || exit
        done
        for package in "${selfStarting[@]}"; do
            tests "$package" || exit
        done
        printf '%s\n' TestAnImportEndsWithItsContext TestCutShort
    ) || return
    grep -E '^Test' <<<"$names" | sort -u | grep -vE -- "$(joined "${sequential[@]}")"
}

# watchedCases are cases of other tests that it watches: the others of an import have the
# same goroutines, and other data.
watchedCases='TestConformance$/^events$|TestConformance$/standalone/^events$|TestWritesResumeWhenTheDiskIsWellAgain$/^journal:_(sync|new_segment):_no_space'
watchedCases+='|TestImportMatchesAPlainSet$/^Europe|TestEveryPacking$/^zstd$'

# What the race detector leaves out is SQLite, a program in C that became Go and whose
# memory is not Go's: watched, it takes minutes to compile. pebblegozstd has Pebble compress
# with Go, as it does in what is released: with C it takes a C compiler as long.
# Our own code is compiled without inlining, which takes a quarter off that, and costs the
# runs nothing that can be measured.
watching=(-race -tags pebblegozstd -gcflags='modernc.org/...=-race=false' -gcflags='github.com/rollcall/rollcall/...=-l -dwarf=false')

# The steps of .ci/run vet all that is built, by more rules than go test has. Compilers and
# linkers collect their garbage less often and take one processor each, as several are at
# work: they take a sixth less of the processor, and more memory.
compiling=(-vet=off -toolexec 'env GOGC=400 GOMAXPROCS=1')

# Tests of a package that may run side by side do so four at a time, as many of them
# wait for servers.
beside=(-parallel 4)

# reaches_end_to_end tells whether end-to-end tests may be among those that run.
reaches_end_to_end() {
    [[ $run != usual ]] && { ! packaged "$@" || [[ " $* " == *e2e* || " $* " == *...* ]]; }
}

# joined joins patterns to one.
joined() {
    local IFS='|'
    printf '%s' "$*"
}

# narrowed tells whether arguments choose packages or tests.
narrowed() {
    local argument
    for argument; do
        case $argument in
        . | ./* | github.com/rollcall/rollcall* | -run | -run=* | --run | --run=*) return 0 ;;
        esac
    done
    return 1
}

# packaged tells whether arguments choose packages.
packaged() {
    local argument
    for argument; do
        case $argument in
        . | ./* | github.com/rollcall/rollcall*) return 0 ;;
        esac
    done
    return 1
}

# widened adds to a pattern of -run the cases and groups of the conformance suite
# that it is part of the name of. Where engines run in several ways, these lie one
# level deeper.
widened() {
    if [[ $1 == */* || $1 == *[\^\$]* ]]; then
        printf '%s' "$1"
    else
        printf '%s|Conformance/(?i:%s)|Conformance//(?i:%s)' "$1" "$1" "$1"
        printf '|Conformance/(standalone|cluster|sentinel)/(?i:%s)|Conformance/(standalone|cluster|sentinel)//(?i:%s)' "$1" "$1"
    fi
}

# chosen does the one run that arguments ask for.
chosen() {
    local arguments=()
    while (($#)); do
        case $1 in
        -run | --run)
            if (($# > 1)); then
                arguments+=(-run "$(widened "$2")")
                shift
            else
                arguments+=("$1")
            fi
            ;;
        -run=* | --run=*) arguments+=(-run "$(widened "${1#*=}")") ;;
        *) arguments+=("$1") ;;
        esac
        shift
    done
    packaged "${arguments[@]}" || arguments=("${everything[@]}" "${arguments[@]}")
    local c=0 # what a whole run has compiled can be used again
    [[ " ${arguments[*]} " == *' -race '* ]] && c=1
    CGO_ENABLED=$c go test -p 2 "${beside[@]}" -timeout "$limit" "${arguments[@]}"
}

# tests names all tests of a package.
tests() { grep -hoE '^func (Test|Fuzz|Example)[A-Za-z0-9_]*' "$1"/*_test.go | cut -d' ' -f2; }

# usual runs all tests but the end-to-end tests once: with the race detector what it watches,
# and the rest without. Whatever package has a test of a name that the one run leaves to the other,
# the other has that package too. Both runs go on at once: while tests of the one wait for
# servers, the other compiles and computes. What is not watched is built without C, as what
# is released.
usual() {
    local names packages package directory plain=() some=() status=0
    names=$(watched) || return
    names=${names//$'\n'/|}
    packages=$(go list -f '{{.ImportPath}} {{.Dir}}' "${everything[@]}") || return
    while read -r package directory; do
        package=.${package#github.com/rollcall/rollcall}
        [[ " ${meeting[*]} ${endToEnd[*]} " == *" $package "* ]] && continue
        plain+=("$package")
        if grep -qsE "^func ($names|TestConformance|TestWritesResumeWhenTheDiskIsWellAgain)\(" "$directory"/*_test.go; then
            some+=("$package")
        fi
    done <<<"$packages"
    raced "^($names)\$|$watchedCases" "$@" &
    local second=$!
    CGO_ENABLED=0 go test "${compiling[@]}" -p 2 "${beside[@]}" -timeout "$limit" -skip "^($names)\$|$watchedCases|$endToEndTests" "${plain[@]}" "$@" || status=$?
    wait "$second" || status=$?
    return "$status"
}

# raced runs the chosen tests of some packages, and all of those that are watched as a
# whole.
raced() {
    local pattern=$1 names
    shift
    names=$(for package in "${meeting[@]}"; do tests "$package" || exit; done | sort -u) || return
    pattern+="|^(${names//$'\n'/|})\$"
    CGO_ENABLED=1 aside 'with the race detector, where goroutines meet' \
        go test "${compiling[@]}" "${watching[@]}" -p 2 "${beside[@]}" -timeout "$limit" -run "$pattern" \
        "${some[@]}" "${meeting[@]}" "$@"
}

# end_to_end runs the end-to-end tests, and the torture run beside them.
end_to_end() {
    local status=0
    CGO_ENABLED=0 aside 'torture' go test "${compiling[@]}" -timeout "$limit" ./e2e/torture "$@" -torture=1m &
    local second=$!
    CGO_ENABLED=0 go test "${compiling[@]}" "${beside[@]}" -timeout "$limit" ./e2e "$@" || status=$?
    CGO_ENABLED=0 go test "${compiling[@]}" "${beside[@]}" -timeout "$limit" -run "$endToEndTests" ./cmd/rollcall "$@" || status=$?
    wait "$second" || status=$?
    return "$status"
}

# aside runs a command beside another one: what it prints is shown at its end, under a title.
aside() {
    local title=$1 printed status=0
    shift
    printed=$(mktemp)
    "$@" >"$printed" 2>&1 || status=$?
    say "$title, after $((SECONDS - began)) s:"
    cat -- "$printed"
    rm -f -- "$printed"
    return "$status"
}

# The limit is for a test that hangs; no machine is so slow that one that does not
# runs into it.
limit=60m
run=usual
arguments=()
for argument; do
    case $argument in
    -long | --long)
        export ROLLCALL_TEST_LONG=20
        limit=24h
        ;;
    -e2e | --e2e)
        run=end_to_end
        everything=("${endToEnd[@]}")
        ;;
    *) arguments+=("$argument") ;;
    esac
done
set -- ${arguments[@]+"${arguments[@]}"}
if narrowed "$@"; then
    run=chosen
fi

prepare "$@"
began=$SECONDS
if "$run" "$@"; then
    say "PASSED in $((SECONDS - began)) s"
else
    status=$?
    say "FAILED after $((SECONDS - began)) s"
    exit "$status"
fi
