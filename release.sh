#!/usr/bin/env bash
#
# Builds a release for Linux, macOS and Windows on amd64 and arm64 into dist/, with
# checksums: ./release.sh
#
# Only some of them: ./release.sh linux/arm64 windows/amd64
#
# A binary is static, holds the time zones, and says the version that git describes.
# The same commit and the same Go make the same binary.

set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"

platforms=(linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64)
if (($#)); then
    platforms=("$@")
fi

version=$(git describe --tags --always 2>/dev/null || echo devel)
rm -rf dist
mkdir -p dist

# build makes one binary and packs it with what has to go with it.
build() {
    local os=${1%/*} arch=${1#*/} name binary=rollcall
    name=rollcall_${version}_${os}_${arch}
    if [[ $os == windows ]]; then
        binary=rollcall.exe
    fi
    mkdir "dist/$name"
    CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -trimpath -tags timetzdata \
        -ldflags='-s -w -buildid=' -o "dist/$name/$binary" ./cmd/rollcall
    cp LICENSE NOTICE README.md README.zh-CN.md "dist/$name/"
    tar -C dist -czf "dist/$name.tar.gz" "$name"
    rm -r "dist/$name"
}

for platform in "${platforms[@]}"; do
    printf 'release.sh: %s\n' "$platform" >&2
    build "$platform"
done

checksum=(sha256sum)
command -v sha256sum >/dev/null || checksum=(shasum -a 256) # macOS
(cd dist && "${checksum[@]}" ./*.tar.gz | sed 's, \./, ,' >SHA256SUMS)
cat dist/SHA256SUMS
