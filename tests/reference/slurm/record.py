#!/usr/bin/env python3
"""Records what a real Slurm does with the queues of this folder, on one machine, in a private folder.

  tests/reference/slurm/record.py FOLDER NAME...   writes NAME.csv beside NAME.json

NAME.json is a scenario of `lockstep run`. Its cluster becomes slurm.conf, topology.conf and gres.conf;
its accounts and qualities of service are entered with sacctmgr; its jobs are submitted with sbatch, each
after its "submit", and sleep for what they run. NAME.csv has the jobs as they were: when each was
submitted, started and ended, on which nodes, and how often it was preempted.

Needs slurmctld, slurmd, slurmdbd, munged, mariadbd and faketime (Debian 12: slurmctld slurmd slurmdbd
slurm-wlm-mysql-plugin munge mariadb-server faketime), as root. SLURM_ORACLE_ROOT names a folder into
which packages were unpacked instead (dpkg -x). The clock runs LOCKSTEP_ORACLE_SPEED times as fast (20).
"""
import csv, json, os, pathlib, re, shutil, signal, subprocess, sys, time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = os.environ.get("SLURM_ORACLE_ROOT", "")
SPEED = float(os.environ.get("LOCKSTEP_ORACLE_SPEED", "20"))
USERS = ["games", "man", "lp", "mail", "news", "uucp", "proxy", "backup"]  # of every Debian
UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400}


def seconds(text, default=0):
    if text is None:
        return default
    number, unit = re.fullmatch(r"([\d.]+) *(\w+)", text).groups()
    return float(number) * UNITS[unit]


def program(name):
    for folder in ("usr/sbin", "usr/bin"):
        path = pathlib.Path(ROOT or "/") / folder / name
        if path.exists():
            return str(path)
    return shutil.which(name) or sys.exit(f"record.py: no {name}")


class Oracle:
    def __init__(self, folder, queue, nodes, gpus):
        self.dir = pathlib.Path(folder)
        self.queue, self.nodes, self.gpus = queue, nodes, gpus
        self.started = []
        self.fast = dict(os.environ, SLURM_CONF=f"{self.dir}/slurm.conf")
        if ROOT:
            self.fast["LD_LIBRARY_PATH"] = f"{ROOT}/usr/lib/x86_64-linux-gnu"
        # The database stays on the true clock.
        self.env = {k: v for k, v in self.fast.items()
                    if k != "LD_PRELOAD" and not k.startswith("FAKETIME")}

    def write(self, name, text, mode=0o644):
        path = self.dir / name
        path.write_text(text)
        path.chmod(mode)

    def configure(self):
        s = self.dir
        for sub in ("run", "log", "state", "spool", "dev", "my"):
            (s / sub).mkdir(parents=True, exist_ok=True)
        for g in range(self.gpus):
            (s / f"dev/gpu{g}").touch()
        q = self.queue
        slurm = q.get("slurm", {})
        parameters = [f"sched_interval={seconds(slurm.get('sched_interval'), 60):g}",
                      f"bf_interval={seconds(slurm.get('bf_interval'), 30):g}",
                      f"bf_resolution={seconds(slurm.get('bf_resolution'), 60):g}",
                      "bf_continue", "sched_min_interval=0"]
        if q.get("cancel_unsatisfiable"):
            parameters.append("kill_invalid_depend")
        plugins = "/usr/lib/x86_64-linux-gnu/slurm-wlm"
        if ROOT:
            plugins += f":{ROOT}{plugins}"
        preempt = {"qos": "preempt/qos", "partition": "preempt/partition_prio"}.get(
            q.get("preemption", {}).get("mode"), "preempt/none")
        mode = "OFF" if preempt == "preempt/none" else (
            "CANCEL" if q["preemption"].get("cancels") else "REQUEUE")
        weights = q.get("priority", {})
        conf = f"""ClusterName=virt
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={s}/run/munge.sock
CredType=cred/munge
PluginDir={plugins}
SlurmctldPort=36817
SlurmctldPidFile={s}/run/slurmctld.pid
SlurmdPidFile={s}/run/slurmd.%n.pid
SlurmdSpoolDir={s}/spool/%n
StateSaveLocation={s}/state
SlurmctldLogFile={s}/log/slurmctld.log
SlurmdLogFile={s}/log/slurmd.%n.log
SlurmctldDebug=debug
DebugFlags=Backfill,Priority
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=36819
AccountingStoragePass={s}/run/munge.sock
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu
TopologyPlugin=topology/tree
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters={','.join(parameters)}
PriorityType=priority/multifactor
PriorityWeightAge={weights.get('age', 0)}
PriorityMaxAge={int(seconds(weights.get('max_age'), 604800) // 60)}
PriorityWeightFairshare={weights.get('fair_share', 0)}
PriorityWeightJobSize={weights.get('job_size', 0)}
PriorityWeightPartition={weights.get('partition', 0)}
PriorityWeightQOS={weights.get('qos', 0)}
PriorityDecayHalfLife={int(seconds(weights.get('half_life'), 604800) // 60)}
PriorityCalcPeriod={max(1, int(seconds(weights.get('calc_period'), 300) // 60))}
PreemptType={preempt}
PreemptMode={mode}
PreemptExemptTime={int(seconds(q.get('preemption', {}).get('exempt')))}
GresTypes=gpu
MinJobAge=36000
SlurmctldTimeout=600
SlurmdTimeout={int(os.environ.get('LOCKSTEP_ORACLE_NODE_TIMEOUT', '3600'))}
JobRequeue=1
KillWait=5
MpiDefault=none
ReturnToService={0 if q.get('breaks') else 2}
MailProg=/bin/true
SlurmdParameters=config_overrides
NodeName=n[1-{self.nodes}] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[37001-{37000 + self.nodes}] CPUs=64 Boards=1 SocketsPerBoard=2 CoresPerSocket=32 ThreadsPerCore=1 RealMemory=4000 Gres=gpu:{self.gpus}
"""
        partitions = q.get("partitions") or [{"name": "all", "nodes": self.nodes}]
        next_node = 0
        for p in partitions:
            first = p.get("first", next_node)
            next_node = first + p["nodes"]
            conf += (f"PartitionName={p['name']} Nodes=n[{first + 1}-{next_node}] MaxTime=INFINITE "
                     f"State=DOWN OverSubscribe=NO PriorityTier={p.get('tier', 1)} "
                     f"PriorityJobFactor={p.get('priority', 1)}"
                     + (" Default=YES" if p is partitions[0] else "") + "\n")
        self.partitions = [p["name"] for p in partitions]
        self.write("slurm.conf", conf)
        self.write("gres.conf", f"NodeName=n[1-{self.nodes}] Name=gpu File={s}/dev/gpu[0-{self.gpus - 1}]\n")
        leaf = q.get("placement", {}).get("leaf_nodes", self.nodes)
        leaves = []
        for number, first in enumerate(range(1, self.nodes + 1, leaf), 1):
            leaves.append(f"SwitchName=leaf{number} Nodes=n[{first}-{min(first + leaf - 1, self.nodes)}]")
        if len(leaves) > 1:
            leaves.append(f"SwitchName=spine Switches=leaf[1-{len(leaves)}]")
        self.write("topology.conf", "\n".join(leaves) + "\n")
        self.write("slurmdbd.conf", f"""AuthType=auth/munge
AuthInfo=socket={s}/run/munge.sock
PluginDir={plugins}
DbdHost=localhost
DbdPort=36819
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=33306
StorageUser=slurm
StoragePass=x
StorageLoc=slurm_acct
PidFile={s}/run/slurmdbd.pid
LogFile={s}/log/slurmdbd.log
""", 0o600)

    def spawn(self, command, env, log):
        out = open(self.dir / "log" / log, "ab")
        self.started.append(subprocess.Popen(command, env=env, stdout=out, stderr=out,
                                             stdin=subprocess.DEVNULL, start_new_session=True))

    def client(self, *command, check=True, timeout=2000):
        done = subprocess.run(command, env=self.fast, capture_output=True, text=True,
                              timeout=timeout, stdin=subprocess.DEVNULL)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def until(self, ready, what, tries=300):
        for _ in range(tries):
            try:
                if ready():
                    return
            except (subprocess.TimeoutExpired, RuntimeError):
                pass
            time.sleep(0.2 * SPEED)
        raise RuntimeError(f"record.py: no {what}")

    def start(self):
        s = self.dir
        share = f"{ROOT}/usr/share/mysql" if ROOT else "/usr/share/mysql"
        base = ["--no-defaults", "--user=root", f"--datadir={s}/my", f"--lc-messages-dir={share}"]
        boot = "create database mysql;\nuse mysql;\n"
        for part in ("mysql_system_tables.sql", "mysql_performance_tables.sql",
                     "mysql_system_tables_data.sql", "fill_help_tables.sql"):
            path = pathlib.Path(share) / part
            if path.exists():
                boot += path.read_text(errors="replace").replace("@auth_root_socket", "NULL") + "\n"
        subprocess.run([program("mariadbd"), *base, "--bootstrap", "--log-warnings=0"], env=self.env,
                       input="set @auth_root_socket=NULL;\n" + boot, text=True, capture_output=True)
        self.spawn([program("mariadbd"), *base, f"--socket={s}/run/my.sock", "--bind-address=127.0.0.1",
                    "--port=33306", "--innodb-lock-wait-timeout=900", "--skip-grant-tables"],
                   self.env, "mariadb.log")
        mysql = [program("mariadb"), "--no-defaults", f"--socket={s}/run/my.sock", "-uroot"]
        self.until(lambda: subprocess.run(mysql + ["-e", "select 1"], env=self.env,
                                          capture_output=True).returncode == 0, "database")
        subprocess.run(mysql + ["-e", "create database if not exists slurm_acct"], env=self.env, check=True)
        key = s / "run/munge.key"
        if not key.exists():
            key.write_bytes(os.urandom(1024))
            key.chmod(0o400)
        self.spawn([program("munged"), "--force", "--foreground", f"--key-file={key}",
                    f"--socket={s}/run/munge.sock", f"--pid-file={s}/run/munged.pid",
                    f"--log-file={s}/log/munged.log", f"--seed-file={s}/run/munged.seed"],
                   self.fast, "munged.out")
        self.until(lambda: (s / "run/munge.sock").exists(), "munge")
        self.spawn([program("slurmdbd"), "-D"], dict(self.fast, SLURM_CONF=f"{s}/slurm.conf"), "slurmdbd.out")
        self.until(lambda: self.client("sacctmgr", "-n", "list", "cluster", timeout=100) is not None, "slurmdbd")
        self.client("sacctmgr", "-i", "add", "cluster", "virt", check=False)
        self.spawn([program("slurmctld"), "-D", "-c"], self.fast, "slurmctld.out")
        self.until(lambda: "gpu" in self.client("sacctmgr", "-n", "-P", "show", "tres", timeout=100),
                   "gres/gpu in the database")
        self.accounts()
        for n in range(1, self.nodes + 1):
            (s / f"spool/n{n}").mkdir(exist_ok=True)
            self.spawn([program("slurmd"), "-D", "-N", f"n{n}"], self.fast, f"slurmd{n}.out")
        self.until(lambda: self.client("sinfo", "-h", "-N", "-o", "%n %T").count("idle") >= self.nodes,
                   "idle nodes", 600)

    def accounts(self):
        q = self.queue
        run = lambda *a: self.client("sacctmgr", "-i", *a)
        limits = {"grp_tres": "GrpTRES", "grp_jobs": "GrpJobs", "grp_submit_jobs": "GrpSubmitJobs",
                  "grp_tres_mins": "GrpTRESMins", "max_tres_per_job": "MaxTRESPerJob",
                  "max_wall": "MaxWall", "max_jobs": "MaxJobs", "max_submit_jobs": "MaxSubmitJobs",
                  "max_tres_per_user": "MaxTRESPU", "max_jobs_per_user": "MaxJobsPU",
                  "max_submit_jobs_per_user": "MaxSubmitPU", "max_tres_per_account": "MaxTRESPA",
                  "max_jobs_per_account": "MaxJobsPA", "max_submit_jobs_per_account": "MaxSubmitPA"}

        def of(entity):
            out = []
            for key, value in entity.get("limits", {}).items():
                value = int(seconds(value) // 60) if key == "max_wall" else value
                out.append(f"{limits[key]}={value}")
            return out
        for qos in q.get("qos", []):
            run("add", "qos", qos["name"])
        for qos in q.get("qos", []):
            changes = [f"priority={qos.get('priority', 0)}", *of(qos)]
            if qos.get("preempts"):
                changes.append("preempt=" + ",".join(qos["preempts"]))
            if qos.get("grace"):
                changes.append(f"gracetime={int(seconds(qos['grace']))}")
            run("modify", "qos", qos["name"], "set", *changes)
        names = [qos["name"] for qos in q.get("qos", [])]
        with_qos = ["qos=normal," + ",".join(names)] if names else []
        users = {}  # as the scenario calls them -> Debian's
        jobs = [j["job"] for j in q["jobs"]]
        for j in jobs:
            users.setdefault(j.get("user", ""), USERS[len(users)])
        self.users = users
        declared = {a["name"]: a for a in q.get("accounts", [])}
        for j in jobs:
            declared.setdefault(j.get("account", "none"), {"name": j.get("account", "none")})
        for a in declared.values():
            run("add", "account", a["name"], f"fairshare={a.get('shares', 1)}",
                *([f"parent={a['parent']}"] if a.get("parent") else []), *of(a), *with_qos)
        for a in declared.values():
            listed = {u["name"]: u for u in a.get("users", [])}
            for j in jobs:
                if j.get("account", "none") == a["name"]:
                    listed.setdefault(j.get("user", ""), {"name": j.get("user", "")})
            for name, u in listed.items():
                users.setdefault(name, USERS[len(users) % len(USERS)])
                run("add", "user", users[name], f"account={a['name']}", f"fairshare={u.get('shares', 1)}",
                    *of(u), *with_qos)

    def now(self):
        return int(time.time())

    def submit(self, job, ids):
        minutes = max(1, -(-int(seconds(job.get("limit"), seconds(job["runs"]))) // 60))
        gpus, node = job.get("gpus", 1), self.gpus
        nodes, each = max(1, -(-gpus // node)), min(gpus, node)
        command = ["sbatch", "--parsable", f"--uid={self.users[job.get('user', '')]}", "--chdir=/tmp",
                   "-o", "/dev/null", "-J", job["name"], "-A", job.get("account", "none"),
                   "-t", str(minutes), "-N", str(nodes), "--ntasks-per-node", str(each),
                   f"--gres=gpu:{each}", "--requeue"]
        if job.get("qos"):
            command += ["-q", job["qos"]]
        if job.get("partition"):
            command += ["-p", job["partition"]]
        if job.get("tasks"):
            most = f"%{job['at_once']}" if job.get("at_once") else ""
            command += [f"--array=0-{job['tasks'] - 1}{most}"]
        if job.get("dependency"):
            named = re.sub(r"(?<=:)([A-Za-z_]\w*)", lambda m: ids[m.group(1)], job["dependency"])
            command += [f"--dependency={named}"]
        if job.get("reservation"):
            command += [f"--reservation={job['reservation']}"]
        if job.get("begin"):
            command += [f"--begin=now+{int(seconds(job['begin']) - seconds(job.get('submit')))}"]
        if job.get("held"):
            command += ["--hold"]
        code = 1 if job.get("fails") else 0
        command += ["--wrap", f"sleep {seconds(job['runs']):g}; exit {code}"]
        done = subprocess.run(command, env=self.fast, capture_output=True, text=True, timeout=2000)
        if done.returncode != 0:
            ids[job["name"]] = "refused"
            print(f"  {job['name']}: {done.stderr.strip()}")
            return
        ids[job["name"]] = done.stdout.strip().split(";")[0]

    def reserve(self, begin):
        for r in self.queue.get("reservations", []):
            start = begin + int(seconds(r.get("start")))
            end = start + int(seconds(r.get("duration"))) if r.get("duration") else begin + int(seconds(r["end"]))
            first = r.get("first", 0) + 1
            stamp = lambda t: time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(t))
            self.client("scontrol", "create", "reservation", f"ReservationName={r['name']}",
                        f"StartTime={stamp(start)}", f"EndTime={stamp(end)}",
                        f"Nodes=n[{first}-{first + r['nodes'] - 1}]",
                        "Users=root," + ",".join(self.users.values()),
                        "Flags=IGNORE_JOBS" + (",FLEX" if r.get("flex") else ""))

    def run(self, kills=()):
        jobs = sorted((j["job"] for j in self.queue["jobs"]), key=lambda j: seconds(j.get("submit")))
        ids = {}
        first = [j for j in jobs if seconds(j.get("submit")) == 0]
        for j in first:
            if not j.get("reservation"):
                self.submit(j, ids)
        opens = self.now() + 10
        self.reserve(opens)
        for j in first:
            if j.get("reservation"):
                self.submit(j, ids)
        for p in self.partitions:
            self.client("scontrol", "update", f"PartitionName={p}", "State=UP")
        begin = self.now()
        events = [(seconds(j.get("submit")), lambda j=j: self.submit(j, ids)) for j in jobs if j not in first]
        for b in self.queue.get("breaks", []):
            node, at, back = f"n{b['node'] + 1}", seconds(b["at"]), seconds(b["at"]) + seconds(b["repair"])
            events.append((at, lambda node=node: self.client(
                "scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=broken")))
            events.append((back, lambda node=node: self.client(
                "scontrol", "update", f"NodeName={node}", "State=RESUME")))
        for at, do in sorted(events, key=lambda event: event[0]):
            while self.now() < begin + at:
                time.sleep(0.5)
            do()
        deadline = time.time() + SPEED * float(os.environ.get("LOCKSTEP_ORACLE_SECONDS", "240"))
        until = seconds(self.queue.get("until"), 1e9)
        while time.time() < deadline and self.now() < begin + until:
            left = self.client("squeue", "-h", "-r", "-o", "%i %r %T").split("\n")
            open_jobs = [l for l in left if l and "JobHeld" not in l and "DependencyNeverSatisfied" not in l]
            if not open_jobs:
                break
            time.sleep(5)
        return begin, ids

    def rows(self, begin, ids):
        time.sleep(60)  # until the database has it
        text = self.client("sacct", "-a", "-X", "-D", "-P", "-n", "-S", "now-30days", "-o",
                           "JobID,JobName,Submit,Start,End,NodeList,State,QOS,Priority")
        stamp = lambda t: "" if t in ("Unknown", "None") else str(int(time.mktime(time.strptime(t, "%Y-%m-%dT%H:%M:%S"))) - begin)
        out = []
        for line in text.split("\n"):
            if not line:
                continue
            job, name, submit, start, end, nodes, state, qos, priority = line.split("|")
            task = job.split("_")[1] if "_" in job else ""
            out.append([f"{name}_{task}" if task else name, stamp(submit), stamp(start), stamp(end),
                        nodes if nodes != "None assigned" else "", state.split()[0], priority])
        return out

    def site(self, folder):
        """What the site's own tools say of it, for `lockstep queue import`."""
        folder.mkdir(exist_ok=True)
        conf = (self.dir / "slurm.conf").read_text().replace(str(self.dir), "/var/spool/slurm")
        conf = re.sub(r"(?m)^(PluginDir=[^:\n]*):.*$", r"\1", conf)
        (folder / "slurm.conf").write_text(conf)
        (folder / "topology.conf").write_text((self.dir / "topology.conf").read_text())
        (folder / "qos.txt").write_text(self.client("sacctmgr", "-P", "show", "qos"))
        self.client("sacctmgr", "-i", "dump", "virt", f"file={folder}/dump.cfg")
        (folder / "squeue.json").write_text(self.client("squeue", "--json"))
        columns = ("JobID,JobName,User,Account,Partition,QOS,Submit,Eligible,Start,End,Timelimit,"
                   "AllocTRES,ReqTRES,NodeList,State")
        (folder / "sacct.txt").write_text(
            self.client("sacct", "-a", "-X", "-P", "-S", "now-30days", f"--format={columns}"))

    def stop(self):
        subprocess.run(["scancel", "--state=RUNNING,PENDING,SUSPENDED", "--me"], env=self.fast, capture_output=True, timeout=600)
        for process in reversed(self.started):
            try:
                os.killpg(process.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        time.sleep(2 * SPEED)
        for process in self.started:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def record(folder, name):
    scenario = json.loads((HERE / f"{name}.json").read_text())
    shutil.rmtree(folder, ignore_errors=True)
    node = scenario["cluster"]["node"]
    gpus = 8
    oracle = Oracle(folder, scenario["queue"], scenario["cluster"]["nodes"], gpus)
    oracle.configure()
    try:
        oracle.start()
        begin, ids = oracle.run()
        if name == "limits":
            oracle.site(HERE / "site")
        rows = oracle.rows(begin, ids)
    finally:
        oracle.stop()
    with open(HERE / f"{name}.csv", "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["job", "submit_s", "start_s", "end_s", "nodes", "state", "priority"])
        writer.writerows(rows)
    print(f"{name}: {len(rows)} rows")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if "FAKETIME_SHARED" not in os.environ:  # one wrapper, so that all see one clock
        os.environ["FAKETIME_DONT_RESET"] = "1"
        os.execvp("faketime", ["faketime", "-f", f"+0 x{SPEED:g}", sys.executable, *sys.argv])
    for one in sys.argv[2:]:
        record(sys.argv[1], one)
