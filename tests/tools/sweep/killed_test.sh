#!/usr/bin/env bash
# killed_test.sh LOCKSTEP: a sweep that is killed at twenty random moments ends with the results of
# one that was left alone; a disk that fills up and a folder that cannot be written lose nothing.
set -euo pipefail
lockstep=$1
here=$(cd "$(dirname "$0")" && pwd)
. "$here/same_results.sh"
command -v sqlite3 >/dev/null || { echo "skipped: needs sqlite3"; exit 0; }
work=$(mktemp -d)
trap 'umount "$work/disk" 2>/dev/null || true; rm -rf "$work"' EXIT

"$lockstep" sweep "$here/weeks.json" -o "$work/calm.db" --quiet

seed=${SEED:-$((16#$(od -An -N2 -tx2 /dev/urandom | tr -d ' ')))}
echo "seed of the moments (SEED=): $seed"
RANDOM=$seed
for _ in $(seq 20); do
  "$lockstep" sweep "$here/weeks.json" -o "$work/killed.db" -j 2 --quiet 2>/dev/null &
  sleep "0.$(printf %03d $((RANDOM % 300)))"
  kill -9 $! 2>/dev/null || true
  wait $! 2>/dev/null || true
done
rows=$(sqlite3 "$work/killed.db" "SELECT count(*) FROM points" 2>/dev/null || echo 0)
echo "rows after twenty kills: $rows of 100"
"$lockstep" sweep "$here/weeks.json" -o "$work/killed.db" --quiet
same_results "$work/calm.db" "$work/killed.db"

# Needs to mount a small disk, which not every container lets root do.
mkdir "$work/disk"
if mount -t tmpfs -o size=192k tmpfs "$work/disk" 2>/dev/null; then
  status=0
  "$lockstep" sweep "$here/weeks.json" -o "$work/disk/full.db" -q 2>"$work/words" || status=$?
  [ $status -eq 2 ] && grep -q "full.db: found a disk without space left" "$work/words" ||
    { echo "full disk: status $status: $(cat "$work/words")"; exit 1; }
  kept=$(sqlite3 "$work/disk/full.db" "SELECT count(*) FROM points")
  mount -o remount,size=8m "$work/disk"
  "$lockstep" sweep "$here/weeks.json" -o "$work/disk/full.db" -q
  same_results "$work/calm.db" "$work/disk/full.db"
  echo "full disk: $kept points were kept"
  mount -o remount,ro "$work/disk"
  status=0
  "$lockstep" sweep "$here/weeks.json" -o "$work/disk/new.db" -q 2>"$work/words" || status=$?
  [ $status -eq 2 ] && [ "$(wc -l <"$work/words")" -eq 1 ] ||
    { echo "read-only folder: status $status: $(cat "$work/words")"; exit 1; }
  cat "$work/words"
fi
echo "passed"
