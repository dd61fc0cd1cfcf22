#!/usr/bin/env bash
# The packages in a Debian 12 that has nothing else: the .deb installed by apt, then the archive with
# its own libraries in a root without them. Each answers as the program of the build folder does.
#   tests/package/debian_test.sh BUILD      as root, with mmdebstrap and a mirror of Debian
set -euo pipefail
build=$(realpath "$1")
tree=$(realpath "$(dirname "$0")/../..")

skip() { echo "skipped: $*"; exit 0; }
[ "$(id -u)" -eq 0 ] || skip "needs root"
for program in mmdebstrap cpack dpkg-shlibdeps; do
  command -v $program >/dev/null || skip "needs $program"
done
scratch=$(mktemp -d)
cleanup() { rm -rf --one-file-system "$scratch"; }
trap cleanup EXIT
fail() { echo "$*"; exit 1; }

"$build/lockstep" run llama3-405b-16k --format json >"$scratch/expected.json" ||
  fail "the program of $build does not answer"
# Names differ between a tree and an installed program; the numbers do not.
same() { # FILE
  python3 - "$scratch/expected.json" "$1" <<'PYTHON'
import json, sys
one, other = (json.load(open(path)) for path in sys.argv[1:])
one["job"].pop("file"), other["job"].pop("file")
sys.exit(one != other)
PYTHON
}

(cd "$build" && cpack -G DEB -B "$scratch/packages") >"$scratch/cpack.log" 2>&1 ||
  { tail -n 20 "$scratch/cpack.log"; exit 1; }
deb=$(ls "$scratch"/packages/lockstep_*.deb)
mmdebstrap --quiet --variant=minbase bookworm "$scratch/root" 2>"$scratch/mmdebstrap.log" ||
  skip "mmdebstrap has no mirror: $(tail -n 1 "$scratch/mmdebstrap.log")"
cp -a "$scratch/root" "$scratch/bare"
# With /proc, by which a program finds its own folder, and the loader libraries beside it.
inside() {
  unshare --mount sh -c 'mount -t proc proc "$1/proc" && exec chroot "$1" /usr/bin/env -i \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 sh -c "$2"' - "$scratch/$1" "$2"
}

began=$SECONDS
cp "$deb" "$scratch/root/tmp/lockstep.deb"
inside root "apt-get -qq update && apt-get -qq install -y --no-install-recommends /tmp/lockstep.deb" \
  >"$scratch/apt.log" 2>&1 || { tail -n 20 "$scratch/apt.log"; exit 1; }
inside root "lockstep run llama3-405b-16k --format json" >"$scratch/deb.json"
echo "deb: $(stat -c %s "$deb") bytes; installed and answered in $((SECONDS - began)) s"
same "$scratch/deb.json" || fail "the installed program answers otherwise"
for file in bin/lockstep share/bash-completion/completions/lockstep share/zsh/site-functions/_lockstep \
  share/fish/vendor_completions.d/lockstep.fish share/man/man1/lockstep.1 share/man/man1/lockstep-run.1 \
  share/man/man1/lockstep-explore.1 share/doc/lockstep/LICENSE; do
  [ -s "$scratch/root/usr/$file" ] || fail "no /usr/$file in the package"
done
inside root "cd /tmp && lockstep run --model llama3_8b --node dgx_h100 --nodes 2 -o my.json >/dev/null &&
  lockstep run my.json --report page.html >/dev/null && lockstep validate --intervals >/dev/null &&
  lockstep list scenarios >/dev/null" || fail "a command fails in the bare root"
# The page: its server answers, and stops when it is told.
inside root "cd /tmp && { lockstep explore >address 2>/dev/null & } && sleep 3 && test -s address && kill \$! &&
  wait \$!" || fail "explore does not serve, or does not stop"
# As a file, where the program was built behind tools/package/wasm/build.
if (cd "$scratch" && "$build/lockstep" explore llama3-405b-16k -o explore.html) >"$scratch/explore.log" 2>&1; then
  inside root "cd /tmp && lockstep explore llama3-405b-16k -o explore.html >/dev/null &&
    [ \$(stat -c %s explore.html) -gt 1000000 ]" || fail "the installed program writes no page to explore"
else
  echo "explore -o: not in this build: $(tail -n 1 "$scratch/explore.log")"
fi
inside root "apt-get -qq remove -y lockstep" >/dev/null 2>&1
[ ! -e "$scratch/root/usr/share/lockstep" ] || fail "the package leaves files behind"

archive=$("$tree/tools/package/archive" "$build" "$scratch")
tar --extract --file "$archive" --directory "$scratch/bare/opt"
folder=/opt/$(basename "$archive" .tar.gz)
inside bare "cd / && $folder/bin/lockstep run llama3-405b-16k --format json" >"$scratch/archive.json" ||
  fail "the archive's program does not run without libraries of the system"
same "$scratch/archive.json" || fail "the archive's program answers otherwise"
inside bare "mv $folder /usr/elsewhere && /usr/elsewhere/bin/lockstep list gpus >/dev/null" ||
  fail "the archive does not run from another folder"
echo "archive: $(stat -c %s "$archive") bytes"
