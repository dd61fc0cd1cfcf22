#!/usr/bin/env bash
# The archive for arm64 under qemu, with nothing of Debian's arm64 but its C library: the bytes of the
# program in BUILD for twenty steps and what is no step, its mistakes, from any folder.
#   tests/package/arm64_test.sh BUILD ARCHIVE   with qemu-user-static, mmdebstrap and a mirror of Debian
set -euo pipefail
build=$(realpath "$1")
archive=$(realpath "$2")
tree=$(realpath "$(dirname "$0")/../..")

skip() { echo "skipped: $*"; exit 0; }
for program in qemu-aarch64-static mmdebstrap; do
  command -v $program >/dev/null || skip "needs $program"
done
scratch=$(mktemp -d)
cleanup() { rm -rf --one-file-system "$scratch"; }
trap cleanup EXIT
fail() { echo "$*"; exit 1; }

mmdebstrap --quiet --architectures=arm64 --variant=extract --include=libc6 bookworm "$scratch/root" \
  2>"$scratch/mmdebstrap.log" || skip "mmdebstrap has no mirror: $(tail -n 1 "$scratch/mmdebstrap.log")"
tar --extract --file "$archive" --directory "$scratch"
mv "$scratch/$(basename "$archive" .tar.gz)" "$scratch/elsewhere"
cd "$scratch/elsewhere"
arm64=(qemu-aarch64-static -L "$scratch/root" bin/lockstep)

count=0
while read -r name; do
  scenario=share/lockstep/scenarios/$name.json
  "${arm64[@]}" run "$scenario" --format json >"$scratch/arm64.json" || fail "$name fails"
  "$build/lockstep" run "$scenario" --format json >"$scratch/expected.json"
  cmp -s "$scratch/arm64.json" "$scratch/expected.json" || fail "$name: another answer than that of $build/lockstep"
  count=$((count + 1))
done < <(cat "$tree/tests/package/twenty.txt" && printf '%s\n' llama3-405b-54days rsc1-reliability \
  power/gpt3-175b-512-h100 congestion/two-jobs-one-spine rl/grpo-llama3-8b-colocated \
  queue/slurm-recorded serving/llama3-70b-h100-chat)
[ $count -gt 20 ] || fail "only $count scenarios"
# By name, a page, and a mistake in one line.
"${arm64[@]}" run llama3-405b-16k --report "$scratch/page.html" >/dev/null
grep -q echarts "$scratch/page.html" || fail "no page"
status=0
"${arm64[@]}" run llama3-405b-16 >/dev/null 2>"$scratch/complained" || status=$?
[ $status -eq 2 ] && [ "$(wc -l <"$scratch/complained")" -eq 1 ] && grep -q llama3-405b-16k "$scratch/complained" ||
  fail "status $status: $(cat "$scratch/complained")"
for file in share/man/man1/lockstep-run.1 share/fish/vendor_completions.d/lockstep.fish share/doc/lockstep/LICENSE; do
  [ -s $file ] || fail "no $file"
done
echo "arm64: $(stat -c %s "$archive") bytes; $count scenarios answer with the bytes of $build/lockstep"
