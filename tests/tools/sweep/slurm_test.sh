#!/usr/bin/env bash
# slurm_test.sh LOCKSTEP: a sweep as a Slurm job array, on a cluster of this machine's own with four
# virtual nodes. One task is killed, one node is taken down, the command is interrupted and called
# again; the results are those of a local sweep.
set -euo pipefail
lockstep=$1
here=$(cd "$(dirname "$0")" && pwd)
. "$here/same_results.sh"
export PATH=$PATH:/usr/sbin:/sbin
for tool in slurmctld slurmd munged sbatch sqlite3; do
  command -v "$tool" >/dev/null || { echo "skipped: needs $tool (tools/setup --test)"; exit 0; }
done
# A scheduler that takes tasks and never runs them: three attempts, then one line that says so.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
printf '#!/bin/sh\necho 7\n' >"$work/bin/sbatch"
printf '#!/bin/sh\nexit 0\n' >"$work/bin/squeue"
chmod +x "$work"/bin/*
status=0
PATH=$work/bin:$PATH "$lockstep" sweep "$here/weeks.json" -o "$work/never.db" --engine slurm \
  --shards 2 --quiet 2>"$work/words" || status=$?
grep -q "found shard 0 of 2 without a result after 3 attempts" "$work/words" && [ $status -eq 2 ] ||
  { echo "status $status: $(cat "$work/words")"; exit 1; }
rm -rf "$work"

[ "$(id -u)" -eq 0 ] || { echo "skipped: virtual nodes need root"; exit 0; }

work=$(mktemp -d)
export SLURM_CONF=$work/slurm.conf
nodes="n1 n2 n3 n4"
stop() {
  scancel -u root 2>/dev/null || true
  for file in "$work"/run/slurmd.*.pid "$work"/run/slurmctld.pid "$work"/run/munged.pid; do
    [ -f "$file" ] && kill "$(cat "$file")" 2>/dev/null || true
  done
  sleep 0.5
  rm -rf "$work" 2>/dev/null || { sleep 2; rm -rf "$work"; }
}
trap stop EXIT

port=$((20000 + $$ % 20000))
mkdir -p "$work"/{run,log,state} && chmod 755 "$work"
cat >"$SLURM_CONF" <<CONF
ClusterName=lockstep
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# A task of a dead node may start again after 5 s instead of 2 minutes.
AuthInfo=socket=$work/run/munge.sock,cred_expire=5
SlurmctldPort=$port
SlurmctldPidFile=$work/run/slurmctld.pid
SlurmdPidFile=$work/run/slurmd.%n.pid
SlurmdSpoolDir=$work/spool/%n
StateSaveLocation=$work/state
SlurmctldLogFile=$work/log/slurmctld.log
SlurmdLogFile=$work/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,bf_interval=2
MpiDefault=none
ReturnToService=2
KillWait=2
MailProg=/bin/true
SlurmdParameters=config_overrides
NodeName=n[1-4] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + 4))] CPUs=1 RealMemory=2000 State=UNKNOWN
PartitionName=sweep Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
head -c 1024 /dev/urandom >"$work/run/munge.key" && chmod 400 "$work/run/munge.key"
munged --force --key-file="$work/run/munge.key" --socket="$work/run/munge.sock" \
  --pid-file="$work/run/munged.pid" --log-file="$work/log/munged.log" \
  --seed-file="$work/run/munged.seed" 2>/dev/null
slurmctld -c
for node in $nodes; do mkdir -p "$work/spool/$node" && slurmd -N "$node"; done
for _ in $(seq 100); do
  [ "$(sinfo -h -t idle -o %D 2>/dev/null | head -1)" = 4 ] && break
  sleep 0.1
done
sinfo -h | head -1

"$lockstep" sweep "$here/weeks.json" -o "$work/local.db" -j 2 --quiet

sweep=("$lockstep" sweep "$here/weeks.json" -o "$work/slurm.db" --engine slurm --time 5
       --partition sweep --quiet)
"${sweep[@]}" --shards 8 2>"$work/words" &
driver=$!
# The first process that computes a shard, once it is there.
victim=
for _ in $(seq 200); do
  victim=$(pgrep -f "$work/slurm.db --shard" | tail -1 || true)
  [ -n "$victim" ] && kill -9 "$victim" && break
  sleep 0.05
done
echo "killed -9: process ${victim:-none}"
node=
for _ in $(seq 200); do
  node=$(squeue -h -t R -o %N | head -1)
  [ -n "$node" ] && break
  sleep 0.05
done
scontrol update nodename="$node" state=down reason=test
echo "taken down: node ${node:-none}"

status=0
kill -INT $driver
wait $driver || status=$?
cat "$work/words"
[ $status -eq 130 ] || { echo "status $status after Ctrl-C"; exit 1; }
grep -q "shards are left to Slurm: the same command goes on with them" "$work/words"
"${sweep[@]}" || { tail -5 "$work"/log/slurmctld.log; exit 1; }
[ -n "$victim" ] && [ -n "$node" ]
same_results "$work/local.db" "$work/slurm.db"
[ ! -e "$work/slurm.db.shards" ]
echo "passed"
