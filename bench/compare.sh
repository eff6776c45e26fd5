#!/usr/bin/env bash
#
# Compares the benchmarks of the core with those of an earlier commit, by turns on this
# machine, or with the figures that are kept:
# bench/compare.sh              against bench/baseline.txt
# bench/compare.sh COMMIT       against that commit, ten turns
# bench/compare.sh -keep        makes bench/baseline.txt anew
#
# The kept figures are of another machine unless you made them: then only allocations say
# something. Whether a change is more than noise, benchstat says.

set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

# What is compared: what an application does all the time, and the parts that it is made of.
declare -A chosen=(
    [local]='HotPaths|Flush'
    [internal/directory]='Find/numbers=1M|InsertAll/numbers=1M|ParseNumber'
    [internal/recency]='Hear|Sum'
    [internal/dayset]='Series'
    [internal/order]='Select'
    [internal/intern]='RefKnown'
    [internal/column]='Get'
)
turns=10
export CGO_ENABLED=0

# compile ROOT INTO: builds the benchmarks of a tree.
compile() {
    local package
    for package in "${!chosen[@]}"; do
        go -C "$1" test -c -vet=off -o "$2/${package//\//-}.test" "./$package"
    done
}

# run TESTS INTO: takes one turn.
run() {
    local package
    for package in "${!chosen[@]}"; do
        (cd "$package" && "$1/${package//\//-}.test" -test.run '^$' -test.bench "${chosen[$package]}" -test.benchtime 100ms)
    done >>"$2"
}

work=$(mktemp -d)
trap 'git worktree remove --force "$work/tree" 2>/dev/null || true; rm -rf -- "$work"' EXIT
mkdir "$work/new" "$work/old"
compile . "$work/new"

benchstat() { go tool -modfile=tools/go.mod benchstat "$@"; }

case "${1:-}" in
-keep)
    for ((i = 0; i < turns; i++)); do run "$work/new" "$work/new.txt"; done
    grep -E '^(goos|goarch|cpu|pkg|Benchmark)' "$work/new.txt" >bench/baseline.txt
    ;;
'')
    for ((i = 0; i < turns; i++)); do run "$work/new" "$work/new.txt"; done
    benchstat kept=bench/baseline.txt now="$work/new.txt"
    ;;
*)
    git worktree add -q --detach "$work/tree" "$1"
    compile "$work/tree" "$work/old"
    for ((i = 0; i < turns; i++)); do
        run "$work/old" "$work/old.txt"
        run "$work/new" "$work/new.txt"
    done
    benchstat "$1=$work/old.txt" now="$work/new.txt"
    ;;
esac
