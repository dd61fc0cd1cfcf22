#!/usr/bin/env bash
# The packages in a Debian 12 that has nothing else: the .deb installed by apt, then the archive with
# its own libraries in a root without them. Each answers as the program of the build folder does.
# The commands of the site's page for newcomers (tools/package/site/newcomer.md) run in it, and are
# counted: the program, the first slider of its page, and the Python wheel, where one is given.
#   tests/package/debian_test.sh BUILD [WHEEL]    as root, with mmdebstrap and a mirror of Debian
set -euo pipefail
build=$(realpath "$1")
wheel=${2:+$(realpath "$2")}
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
enter=(unshare --mount sh -c 'mount -t proc proc "$1/proc" && exec chroot "$1" /usr/bin/env -i \
  PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 sh -c "$2"' -)
inside() { "${enter[@]}" "$scratch/$1" "$2"; }

# A newcomer's way: the commands of a section of the page, each once, as they stand there.
commands_of() { # HEADING
  sed -n "/^## $1\$/,/^## /{/^\`\`\`sh\$/,/^\`\`\`\$/{/^\`\`\`/d;p}}" "$tree/tools/package/site/newcomer.md"
}
way() { # HEADING
  local began=$SECONDS count=0 command
  while read -r command <&3; do
    count=$((count + 1))
    echo "  \$ $command"
    inside root "cd /root && $command" >"$scratch/said" 2>"$scratch/complained" ||
      { tail -n 20 "$scratch/said" "$scratch/complained"; fail "a newcomer's command fails: $command"; }
  done 3< <(commands_of "$1")
  [ $count -gt 1 ] || fail "no commands of \"$1\""
  echo "$1: $count commands, $count tries, $((SECONDS - began)) s"
}

cp "$deb" "$scratch/root/root/"
echo "deb: $(stat -c %s "$deb") bytes"
way "The program"
inside root "lockstep run llama3-405b-16k --format json" >"$scratch/deb.json"
same "$scratch/deb.json" || fail "the installed program answers otherwise"
for file in bin/lockstep share/bash-completion/completions/lockstep share/zsh/vendor-completions/_lockstep \
  share/fish/vendor_completions.d/lockstep.fish share/man/man1/lockstep.1.gz share/man/man1/lockstep-run.1.gz \
  share/man/man1/lockstep-explore.1.gz share/doc/lockstep/LICENSE share/doc/lockstep/copyright; do
  [ -s "$scratch/root/usr/$file" ] || fail "no /usr/$file in the package"
done
for package in libprotobuf libyaml-cpp libpugixml libsqlite3 zlib1g libboost nlohmann-json3; do
  grep -q "^---- $package" "$scratch/root/usr/share/doc/lockstep/copyright" ||
    fail "no notice of $package in the package"
done
inside root "cd /tmp && lockstep run --model llama3_8b --node dgx_h100 --nodes 2 -o my.json >/dev/null &&
  lockstep run my.json --report page.html >/dev/null && lockstep validate --intervals >/dev/null &&
  lockstep list scenarios >/dev/null" || fail "a command fails in the bare root"
# The page: its server answers, and stops when it is told.
inside root "cd /tmp && { lockstep explore >address 2>/dev/null & } &&
  for _ in \$(seq 60); do [ ! -s address ] || break; sleep 1; done && test -s address && kill \$! &&
  wait \$!" || fail "explore does not serve, or does not stop"
# Its first slider. The root has this machine's network, and no browser.
driver=$tree/.cache/report-bundle/node_modules/playwright-core
browser=$(command -v chromium-headless-shell chromium chromium-browser google-chrome | head -n 1 || true)
if command -v node >/dev/null && [ -n "$browser" ] && [ -d "$driver" ]; then
  began=$SECONDS
  page=$(commands_of "The page")
  echo "  \$ $page"
  "${enter[@]}" "$scratch/root" "cd /root && exec $page" >"$scratch/address" 2>"$scratch/complained" &
  served=$!
  for _ in $(seq 600); do [ ! -s "$scratch/address" ] || break; sleep 0.1; done
  moved=$(node "$tree/tests/package/first_slider.mjs" "$driver" "$browser" "$(cat "$scratch/address")") ||
    fail "the first slider has no answer: $moved $(cat "$scratch/complained")"
  kill $served && wait $served || fail "explore does not stop"
  echo "The page: 1 command, 1 try, $((SECONDS - began)) s to the first slider's answer ($moved)"
else
  echo "The page: skipped: needs node, chromium and tools/setup --test"
fi
# As a file, where the program was built behind tools/package/wasm/build.
if (cd "$scratch" && "$build/lockstep" explore llama3-405b-16k -o explore.html) >"$scratch/explore.log" 2>&1; then
  inside root "cd /tmp && lockstep explore llama3-405b-16k -o explore.html >/dev/null &&
    [ \$(stat -c %s explore.html) -gt 1000000 ]" || fail "the installed program writes no page to explore"
else
  echo "explore -o: not in this build: $(tail -n 1 "$scratch/explore.log")"
fi
if [ -n "$wheel" ]; then
  cp "$wheel" "$scratch/root/root/"
  way "Python"
  grep -q model_flops "$scratch/said" || fail "Python's first table: $(cat "$scratch/said")"
  inside root "cd /root && venv/bin/python -c 'import lockstep
print(lockstep.run(\"llama3-405b-16k\").json)'" >"$scratch/wheel.json"
  same "$scratch/wheel.json" || fail "the wheel answers otherwise"
else
  inside root "apt-get -qq remove -y lockstep" >/dev/null 2>&1
fi
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
