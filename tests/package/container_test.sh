#!/usr/bin/env bash
# The image of tools/package/Containerfile, built and asked for an answer. Debian's image is made here
# by mmdebstrap, so that no registry is asked, and lies with all that is built in a store of its own,
# which goes away again. The program is compiled, with the user's ccache.
#   tests/package/container_test.sh BUILD    as root, with buildah, mmdebstrap and a mirror of Debian
set -euo pipefail
build=$(realpath "$1")
tree=$(realpath "$(dirname "$0")/../..")

skip() { echo "skipped: $*"; exit 0; }
[ "$(id -u)" -eq 0 ] || skip "needs root"
for program in buildah mmdebstrap; do
  command -v $program >/dev/null || skip "needs $program"
done
scratch=$(mktemp -d)
cleanup() { rm -rf --one-file-system "$scratch"; }
trap cleanup EXIT
fail() { echo "$*"; exit 1; }
store=(buildah --root "$scratch/store" --runroot "$scratch/run" --storage-driver vfs)

began=$SECONDS
mmdebstrap --quiet --variant=minbase bookworm "$scratch/debian.tar" 2>"$scratch/mmdebstrap.log" ||
  skip "mmdebstrap has no mirror: $(tail -n 1 "$scratch/mmdebstrap.log")"
base=$("${store[@]}" from scratch)
"${store[@]}" add --quiet "$base" "$scratch/debian.tar" / >/dev/null
"${store[@]}" commit --quiet --rm "$base" docker.io/library/debian:12-slim >/dev/null
rm "$scratch/debian.tar"
echo "Debian's image: $((SECONDS - began)) s"

began=$SECONDS
# What commands of the build find in their home: `build --env` would be of the image alone.
cache=${CCACHE_DIR:-$HOME/.cache/ccache}
mkdir -p "$cache"
home=/root
options=(--volume "$cache:$home/.cache/ccache")
# With its own bound, or what is more than the default would be thrown away.
if command -v ccache >/dev/null; then
  for key in max_size sloppiness; do
    echo "$key = $(ccache --get-config $key)"
  done >"$scratch/ccache.conf"
  options+=(--volume "$scratch/ccache.conf:$home/.config/ccache/ccache.conf:ro")
fi
# Behind a proxy with a certificate of its own npm has to know that.
certificate=${NODE_EXTRA_CA_CERTS:-}
if [ -f "$certificate" ]; then
  echo "cafile=/ca.crt" >"$scratch/npmrc"
  options+=(--volume "$(realpath "$certificate"):/ca.crt:ro" --volume "$scratch/npmrc:$home/.npmrc:ro")
fi
# One that fails may leave buildah waiting for ever.
timeout --kill-after=60 5400 "${store[@]}" build --isolation chroot --pull-never --layers=false "${options[@]}" \
  --file "$tree/tools/package/Containerfile" \
  --tag lockstep "$tree" >"$scratch/build.log" 2>&1 ||
  { tail -n 40 "$scratch/build.log"; fail "the image is not built"; }
echo "the image: $((SECONDS - began)) s"

image=$("${store[@]}" from --pull-never lockstep)
inside() { "${store[@]}" run --isolation chroot "$image" -- "$@"; }
said() { "${store[@]}" inspect --type image --format "{{$1}}" lockstep; }
[ "$(said .OCIv1.Config.Entrypoint)" = "[lockstep]" ] || fail "its program is $(said .OCIv1.Config.Entrypoint)"
[ "$(said .OCIv1.Config.Cmd)" = "[--help]" ] || fail "without words it runs $(said .OCIv1.Config.Cmd)"
[ "$(inside id -un)" = lockstep ] || fail "it runs as $(inside id -un)"
inside sh -c '! command -v g++ && [ ! -e /source ]' >/dev/null || fail "what built it is still there"
inside lockstep run llama3-405b-16k --format json >"$scratch/image.json"
"$build/lockstep" run llama3-405b-16k --format json >"$scratch/expected.json"
# Names differ between a tree and an installed program; the numbers do not.
python3 - "$scratch/expected.json" "$scratch/image.json" <<'PYTHON' || fail "the image answers otherwise"
import json, sys
one, other = (json.load(open(path)) for path in sys.argv[1:])
one["job"].pop("file"), other["job"].pop("file")
sys.exit(one != other)
PYTHON
# Pages need the chart library, which the build asks npm for.
inside sh -c 'lockstep run llama3-405b-16k --report /tmp/page.html >/dev/null && cat /tmp/page.html' \
  >"$scratch/page.html" || fail "the image writes no page"
"$build/lockstep" run llama3-405b-16k --report "$scratch/expected.html" >/dev/null
# As long as that of BUILD, but for the names of files.
sizes=("$(stat -c %s "$scratch/page.html")" "$(stat -c %s "$scratch/expected.html")")
[ $((sizes[0] - sizes[1])) -lt 10000 ] && [ $((sizes[1] - sizes[0])) -lt 10000 ] &&
  grep -q echarts "$scratch/page.html" ||
  fail "the image's page has ${sizes[0]} bytes, for ${sizes[1]}"
# A mistake is one line and status 2, as anywhere.
status=0
inside lockstep run llama3-405b-16 >/dev/null 2>"$scratch/complained" || status=$?
[ $status -eq 2 ] && grep -q 'llama3-405b-16k' "$scratch/complained" ||
  fail "status $status: $(cat "$scratch/complained")"
echo "lockstep run llama3-405b-16k: the answer of $build/lockstep, and a page of ${sizes[0]} bytes"
