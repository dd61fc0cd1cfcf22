"""Changes of a scenario, and tables of the answers to many of them."""

import ast
import inspect
import json
import pathlib
import sys
import unittest
import unittest.mock

import lockstep
from lockstep.native import _lockstep
from support import JOB, SHARE, InFolder, program

try:
    import pandas
except ImportError:
    pandas = None

WITHOUT_PANDAS = unittest.mock.patch.dict(sys.modules, {"pandas": None})


class Changes(InFolder):
    def test_all_ways_of_writing_a_change_are_one(self):
        path = self.write("scenario", json.dumps(JOB))
        sets = ["--set=cluster.nodes=4", "--set=batch.sequences=64"]
        _, printed, _ = program("run", path, *sets, "--format", "json")
        for changes in [
            {"cluster__nodes": 4, "batch__sequences": 64},
            {"cluster": {"nodes": 4}, "batch": {"sequences": 64}},
            {"set": {"cluster.nodes": 4, "/batch/sequences": 64}},
            {"set": {"cluster.nodes": 4}, "batch": {"sequences": 64}},
            {"set": ["cluster.nodes=4", "batch.sequences=64"]},
            {"set": "cluster.nodes=4", "batch__sequences": 64},
        ]:
            with self.subTest(changes):
                self.assertEqual(lockstep.run(path, **changes).json, printed)

    def test_a_change_takes_values_of_any_kind(self):
        answer = lockstep.run(JOB, lora={"rank": 16}, cluster__fabric__leaf_oversubscription=2)
        self.assertEqual(answer.scenario["lora"], {"rank": 16})
        self.assertEqual(answer.scenario["cluster"]["fabric"], {"leaf_oversubscription": 2})
        whole = lockstep.run(JOB, set={"batch": {"sequences": 32, "tokens": 4096}})
        self.assertEqual(whole.scenario["batch"], {"sequences": 32, "tokens": 4096})
        self.assertEqual(lockstep.run(JOB, recompute="none", allow_oom=True).job.recompute, "none")

    def test_a_stack_that_was_learnt_is_taken_as_it_is_given(self):
        learnt = lockstep.learn([{"scenario": JOB, "step": "1.9 s"}]).preset
        before, after = lockstep.run(JOB).step_s, lockstep.run(JOB, stack=learnt).step_s
        self.assertLess(abs(after - 1.9), abs(before - 1.9))
        self.assertEqual(lockstep.run({**JOB, "stack": learnt}).step_s, after)

    def test_a_dictionary_for_an_option_is_a_part_of_the_scenario(self):
        stack = {"preset": "megatron_core", "allow": ["pipeline_sharding.zero2"]}
        given = lockstep.run(JOB, stack=stack, parallelism__sharding="zero1")
        self.assertEqual(given.scenario["stack"], stack)
        asked = lockstep.run(model="llama3_8b", node="dgx_h100", nodes=2, stack={"preset": "nemo"})
        self.assertEqual(asked.scenario["stack"], {"preset": "nemo"})
        tuned = lockstep.tune(JOB, cluster={"nodes": 1}, keep=1)
        self.assertEqual(tuned.json, lockstep.tune(JOB, cluster__nodes=1, keep=1).json)

    def test_a_dictionary_for_a_file_is_read_as_one(self):
        goal = self.write("plan.goal", "num_ranks 2\nrank 0 { calc 1 }\nrank 1 { calc 5 }\n")
        cluster = {"cluster": JOB["cluster"]}
        path = self.write("cluster.json", json.dumps(cluster))
        self.assertEqual(lockstep.replay(goal, cluster=cluster).json,
                         lockstep.replay(goal, cluster=path).json)

    def test_beside_a_scenario_the_words_of_a_question_are_changes(self):
        self.assertEqual(lockstep.run(JOB, model="qwen3_8b").job.model, "qwen3_8b")

    def test_presets_of_ones_own_are_read_at_every_call(self):
        shipped = json.loads((SHARE / "presets/accuracy/published.json").read_text())
        before = lockstep.run(JOB)
        other = pathlib.Path("mine/accuracy/published.json")
        other.parent.mkdir(parents=True)
        rows = [len(group["rows"]) for group in shipped["groups"]]
        widest = shipped["groups"][rows.index(max(rows))]
        other.write_text(json.dumps(shipped | {"groups": [widest]}))
        mine = lockstep.run(JOB, presets="mine")
        self.assertNotEqual(mine.interval.why, before.interval.why)
        self.assertEqual(mine.step_s, before.step_s)
        self.assertEqual(lockstep.run(JOB).json, before.json)

    def test_the_scenario_that_was_given_stays(self):
        before = json.dumps(JOB)
        lockstep.run(JOB, cluster__nodes=1)
        self.assertEqual(json.dumps(JOB), before)


class Sweeps(InFolder):
    AXES = {"batch.sequences": [16, 32, 7], "cluster.nodes": [1, 2]}

    def rows(self, *arguments, **keywords):
        with WITHOUT_PANDAS:
            return lockstep.sweep(*arguments, **keywords)

    def test_a_point_has_the_numbers_of_its_own_answer(self):
        rows = self.rows(JOB, self.AXES, allow_oom=True)
        self.assertEqual([row["batch.sequences"] for row in rows], [16, 16, 32, 32, 7, 7])
        for row in rows[:4]:
            point = {path: row[path] for path in self.AXES}
            answer = lockstep.run(JOB, set=point, allow_oom=True)
            self.assertIsNone(row["error"])
            self.assertEqual(row["step_s"], answer.step_s)
            self.assertEqual(row["peak_memory_gib"], answer.peak_memory_gib)

    def test_a_point_that_fails_says_why(self):
        row = self.rows(JOB, self.AXES)[4]
        self.assertIsNone(row["step_s"])
        with self.assertRaises(lockstep.ScenarioError) as caught:
            lockstep.run(JOB, set={path: row[path] for path in self.AXES})
        self.assertEqual(row["error"], str(caught.exception))

    def test_any_number_of_threads_gives_the_same(self):
        one = self.rows(JOB, self.AXES, threads=1)
        self.assertEqual(self.rows(JOB, self.AXES, threads=5), one)
        with WITHOUT_PANDAS:
            self.assertEqual(lockstep.run(JOB).sweep(self.AXES), one)

    def test_the_scenario_that_a_question_made_is_swept(self):
        asked = lockstep.run(model="llama3_8b", node="dgx_h100", batch__sequences=1024)
        with WITHOUT_PANDAS:
            rows = asked.sweep({"batch.sequences": [1024, 2048]})
        self.assertEqual(rows[0]["step_s"], asked.step_s)
        self.assertGreater(rows[1]["step_s"], asked.step_s)

    def test_changes_come_before_axes(self):
        rows = self.rows(JOB, {"batch.sequences": [16]}, cluster__nodes=1)
        self.assertEqual(rows[0]["nodes"], 1)

    def test_a_run_of_weeks_is_swept_too(self):
        axes = {"run.checkpoint.interval": ["15 min", "2 h"]}
        rows = self.rows("llama3-405b-54days", axes, trajectories=3)
        self.assertEqual([row["run.checkpoint.interval"] for row in rows], ["15 min", "2 h"])
        self.assertGreater(rows[0]["goodput"], rows[1]["goodput"])

    def test_a_sweep_file_gives_what_its_database_holds(self):
        self.write("job.json", json.dumps(JOB))
        axes = [{"at": "/batch/sequences", "name": "sequences", "values": [16, 32]}]
        path = self.write("sweep.json", json.dumps({"scenario": "job.json", "axes": axes}))
        rows = self.rows(path)
        self.assertEqual([row["sequences"] for row in rows], [16, 32])
        alone = lockstep.run("job.json", batch__sequences=32)
        self.assertEqual(rows[1]["step_s"], alone.step_s)
        self.assertEqual(self.rows(path, output="kept.db"), rows)
        self.assertTrue(pathlib.Path("kept.db").exists())

    @unittest.skipIf(pandas is None, "needs pandas")
    def test_with_pandas_numbers_are_numbers(self):
        table = lockstep.sweep(JOB, self.AXES)
        self.assertIsInstance(table, pandas.DataFrame)
        numbers = table.drop(columns="error")
        for name, kind in numbers.dtypes.items():
            self.assertIn(kind.kind, "if", name)
        self.assertEqual(table.columns[:3].tolist(), ["batch.sequences", "cluster.nodes", "step_s"])
        self.assertTrue(table.step_s.isna()[4])

    @unittest.skipIf(pandas is None, "needs pandas")
    def test_with_pandas_parts_of_an_answer_are_tables(self):
        answer = lockstep.run(JOB)
        for table in [answer.table(), answer.waterfall.table(), answer.stages.table()]:
            self.assertIsInstance(table, pandas.DataFrame)
        self.assertEqual(answer.table().set_index("member").value["step_s"], answer.step_s)
        self.assertEqual(answer.table().set_index("member").unit["step_s"], "s")


def of_name_without_number(job):
    return {"known": 1}[job["user"]]


class Orders(unittest.TestCase):
    JOBS = [{"job": {"name": "narrow", "gpus": 4, "runs": "10 min", "tasks": 2}},
            {"job": {"name": "wide", "gpus": 8, "runs": "10 min"}}]

    def waits(self, order):
        queue = {"order": order, "admission": "strict", "jobs": self.JOBS}
        return lockstep.run({"cluster": {"node": "dgx_h100", "nodes": 1}, "queue": queue})

    def test_an_order_of_python_is_asked_once_for_each_job(self):
        asked = []

        def widest(job):
            asked.append((job["number"], job["gpus"], job["runs_s"]))
            return -job["gpus"]

        lockstep.add_queue_order("widest_of_python", widest)
        self.assertEqual(self.waits("fifo").wait_mean_s, 200)
        answer = self.waits("widest_of_python")
        self.assertEqual((answer.order, answer.wait_mean_s), ("widest_of_python", 400))
        self.assertEqual(asked[:3], [(0, 4, 0), (1, 4, 0), (2, 8, 0)])

    def test_what_an_order_does_wrong_names_it(self):
        lockstep.add_queue_order("broken", of_name_without_number)
        lockstep.add_queue_order("endless", lambda job: float("nan"))
        lockstep.add_queue_order("wordy", lambda job: "first")
        broken = r"KeyError: '' \(.*changes_test\.py, line \d+\) of job narrow_0$"
        wordy = "found 'first'; allowed: a number"
        for order, found in [("broken", broken), ("endless", "nan"), ("wordy", wordy)]:
            with self.assertRaises(lockstep.ScenarioError) as caught:
                self.waits(order)
            self.assertNotIn("\n", caught.exception.found)
            self.assertEqual(caught.exception.pointer, "/queue/order")
            self.assertIn(f'order "{order}" (an extension)', caught.exception.found)
            self.assertRegex(caught.exception.found, found)
        with self.assertRaises(lockstep.UsageError) as twice:
            lockstep.add_queue_order("fifo", len)
        self.assertIn("found twice", str(twice.exception))


def one_f_one_b(call):
    ahead = min(call["micro_batches"], call["ranks"] - 1 - call["rank"])
    order = [f"F{i}" for i in range(ahead)]
    for i in range(call["micro_batches"]):
        if ahead + i < call["micro_batches"]:
            order.append(f"F{ahead + i}")
        order.append(f"B{i}")
    return order


def two_chunks(call):
    """All forward passes, then all backward passes, of two chunks."""
    batches = range(call["micro_batches"])
    forward = [f"F{i}@{chunk}" for chunk in range(2) for i in batches]
    return forward + [f"B{i}@{chunk}" for chunk in (1, 0) for i in batches]


class Schedules(unittest.TestCase):
    PIPELINE = {"model": "llama3_8b", "cluster": {"node": "dgx_h100"},
                "parallelism": {"tensor": 2, "pipeline": 4, "data": 1},
                "batch": {"sequences": 8, "micro": 1, "tokens": 2048}}

    def step(self, schedule, **changes):
        parallelism = {"schedule": schedule} | changes
        return lockstep.run(self.PIPELINE, parallelism=parallelism, allow_oom=True)

    def test_a_schedule_of_python_is_what_the_same_one_built_in_is(self):
        asked = []

        def order(call):
            asked.append((call["ranks"], call["chunks"], call["micro_batches"], call["rank"]))
            return one_f_one_b(call)

        lockstep.add_schedule("own_1f1b", order, source="made up", blocking_sends=True)
        own, built_in = self.step("own_1f1b"), self.step("1f1b")
        self.assertEqual((own.step_s, own.peak_memory_gib),
                         (built_in.step_s, built_in.peak_memory_gib))
        self.assertEqual(own.job.parallelism["schedule"], "own_1f1b")
        self.assertEqual(asked, [(4, 1, 8, rank) for rank in range(4)])
        again = lockstep.sweep(self.PIPELINE, {"parallelism.schedule": ["1f1b", "own_1f1b"]},
                               threads=2, allow_oom=True)
        steps = again.step_s if pandas else [row["step_s"] for row in again]
        self.assertEqual(list(steps), [own.step_s] * 2)
        self.assertEqual(len(asked), 4)

    def test_chunks_and_rules(self):
        rule = {"virtual_stages": (2, 2), "micro_batches": lambda ranks: (ranks, ranks)}
        lockstep.add_schedule("own_breadth", two_chunks, **rule)
        self.assertEqual(self.step("own_breadth", virtual_stages=2).step_s,
                         self.step("breadth_first", virtual_stages=2).step_s)
        with self.assertRaises(lockstep.ScenarioError) as caught:
            self.step("own_breadth", virtual_stages=3)
        self.assertIn("own_breadth", str(caught.exception))
        with self.assertRaises(lockstep.ScenarioError) as caught:
            lockstep.run(self.PIPELINE, batch__sequences=6,
                         parallelism={"schedule": "own_breadth", "virtual_stages": 2})
        self.assertIn("multiple of", str(caught.exception))

    def test_what_a_schedule_does_wrong_names_it(self):
        wrong = {
            "half": (lambda call: one_f_one_b(call)[:-1], "rank 0: no more passes"),
            "typed": (lambda call: ["F0", "X1"],
                      'rank 0: pass 1: found "X1"; allowed: a pass such as "F0"'),
            "numbers": (lambda call: [0, 1], r"rank 0: found \[0, 1\]; allowed: a list of passes"),
            "thrower": (lambda call: call["stage"],
                        r"rank 0: KeyError: 'stage' \(.*, line \d+\) \(--set"),
        }
        for name, (order, found) in wrong.items():
            lockstep.add_schedule(name, order)
            with self.assertRaises(lockstep.ScenarioError) as caught:
                self.step(name)
            self.assertEqual(caught.exception.pointer, "/parallelism/schedule")
            self.assertIn(f'schedule "{name}" (an extension)', caught.exception.found)
            self.assertRegex(caught.exception.found, found)
            self.assertNotIn("\n", str(caught.exception))
        refused = [
            ("1f1b", {}, "small letters"),
            ("zb_h1", {}, "found twice"),
            ("spiral", {"layout": "spiral"}, 'found a layout "spiral"; allowed: loop, v, two_way'),
            ("none", {"virtual_stages": (2, 1)}, "virtual stages from 2 to 1"),
            ("ruled", {"micro_batches": lambda ranks: (0, 1)}, "below 1"),
            ("ruled", {"micro_batches": lambda ranks: 1}, "found 1; allowed: of micro_batches"),
        ]
        for name, keywords, line in refused:
            with self.assertRaises(lockstep.UsageError) as caught:
                lockstep.add_schedule(name, one_f_one_b, **keywords)
            self.assertIn(line, str(caught.exception))


class Policies(unittest.TestCase):
    """Two narrow jobs run when a wide one comes, and a third narrow one after it."""

    def queue(self, admission, preemption=None, order="fifo"):
        jobs = [("a", 4, "0 s", 0), ("b", 4, "5 min", 0), ("wide", 8, "6 min", 0),
                ("c", 4, "12 min", 1)]
        if preemption:
            del jobs[2]
        return lockstep.run(
            {"cluster": {"node": "dgx_h100", "nodes": 1},
             "queue": {"order": order, "admission": admission,
                       **({"preemption": preemption} if preemption else {}),
                       "jobs": [{"job": {"name": name, "gpus": gpus, "submit": submit,
                                         "runs": "30 min" if preemption else "10 min",
                                         "priority": priority}}
                                for name, gpus, submit, priority in jobs]}})

    def lost(self, rule):
        how = {"mode": "evict", "victims": rule, "checkpoint": "10 min"}
        answer = json.loads(self.queue("strict", how, "priority").json)
        return 60 * answer["waterfall"]["lost"]["gpu_hours"]

    def test_an_admission_of_python_says_who_starts(self):
        lockstep.add_queue_admission(
            "all_of_python", lambda call: [job["number"] for job in call["waiting"]])
        asked = self.queue("all_of_python")
        self.assertEqual(asked.admission, "all_of_python")
        self.assertEqual(asked.wait_mean_s, self.queue("best_effort").wait_mean_s)
        lockstep.add_queue_admission("none_of_python", lambda call: [99])
        with self.assertRaises(lockstep.ScenarioError) as caught:
            self.queue("none_of_python")
        self.assertEqual(caught.exception.pointer, "/queue/admission")
        self.assertIn("job 99, which is not among the 1 that wait", caught.exception.found)
        lockstep.add_queue_admission("text_of_python", lambda call: "all")
        with self.assertRaises(lockstep.ScenarioError) as caught:
            self.queue("text_of_python")
        self.assertIn("found 'all'; allowed: a list of jobs' numbers", caught.exception.found)

    def test_a_victim_rule_of_python_says_who_goes(self):
        # After 12 min a has 2 min of work that no checkpoint holds, and b 7.
        lockstep.add_victim_rule("least_of_python", lambda runs, waits: -runs["unsaved_s"])
        self.assertAlmostEqual(self.lost("last"), 7 * 4, places=6)
        self.assertAlmostEqual(self.lost("least_of_python"), 2 * 4, places=6)
        lockstep.add_victim_rule("users_of_python", lambda runs, waits: runs["users"])
        with self.assertRaises(lockstep.ScenarioError) as caught:
            self.lost("users_of_python")
        self.assertEqual(caught.exception.pointer, "/queue/preemption/victims")
        self.assertIn("KeyError: 'users' (", caught.exception.found)
        with self.assertRaises(lockstep.UsageError) as caught:
            lockstep.add_victim_rule("last", lambda runs, waits: 0)
        self.assertIn("found twice", str(caught.exception))

    def test_a_checkpoint_rule_of_python_says_when(self):
        job = {"model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 1},
               "parallelism": {"tensor": 8, "pipeline": 1, "data": 1},
               "batch": {"sequences": 8, "micro": 1, "tokens": 4096},
               "run": {"steps": 100000,
                       "reliability": {"modes": [{"name": "node", "component": "node",
                                                  "effect": "crash", "mean_time": "1000000 d"}]},
                       "checkpoint": {"interval": "1 h", "blocks": "1 s", "finishes": "1 s",
                                      "restores": "1 s"}}}
        fixed = lockstep.run(job, trajectories=2)
        lockstep.add_checkpoint_rule("rare_of_python", lambda call: 2 * call["interval_s"])
        rare = lockstep.run(job, trajectories=2, run__checkpoint__rule="rare_of_python")
        self.assertLessEqual(abs(fixed.checkpoints - 2 * rare.checkpoints), 2)
        self.assertIn("rare_of_python", rare.json)
        lockstep.add_checkpoint_rule("never_of_python", lambda call: None)
        with self.assertRaises(lockstep.ScenarioError) as caught:
            lockstep.run(job, run__checkpoint__rule="never_of_python")
        self.assertEqual(caught.exception.pointer, "/run/checkpoint/rule")
        self.assertIn("found None; allowed: a number of seconds", caught.exception.found)


def halving(call):
    nodes, each = call["nodes"], call["members_per_node"]
    if call["op"] != "all_reduce" or nodes == 1:
        return None
    if each != call["most_members_per_node"] or nodes & (nodes - 1):
        return "needs a power of two of nodes with as many members each"
    across, inside = 2 * (nodes - 1) / nodes, 2 * (each - 1) / each
    return {"latency_s": call["start_s"] + 2 * (nodes.bit_length() - 1) * call["hop_latency_s"],
            "s_per_byte": across / call["node_bytes_per_s"] + inside / call["nvlink_bytes_per_s"],
            "nic_bytes": across / each, "nvlink_bytes": inside}


class Collectives(unittest.TestCase):
    # Two nodes of eight GPUs on each leaf, which has as much of a way up as one GPU has.
    TRAFFIC = {"cluster": {"node": "dgx_h100", "nodes": 4,
                           "fabric": {"kind": "fat_tree", "levels": 2, "leaf_ports_down": 16,
                                      "leaf_oversubscription": 16, "routing": "spray"}},
               "collective": {"op": "all_reduce", "sizes": ["1 GB"]}}

    def asked(self, op="all_reduce", nodes=4, size="64MB", **options):
        return lockstep.comm(op=op, node="dgx_h100", nodes=nodes, sizes=[size], **options).rows[0]

    def test_a_collective_of_python_is_taken_where_it_is_the_fastest(self):
        calls = []

        def counted(call):
            calls.append((call["op"], call["nodes"]))
            return halving(call) if call["op"] == "all_reduce" else None

        before = [self.asked(nodes=nodes) for nodes in (4, 5)]
        lockstep.add_collective("halving_of_python", counted, summary="Halves.", source="Thakur")
        four, five = [self.asked(nodes=nodes) for nodes in (4, 5)]
        self.assertEqual(four.algorithm, "halving_of_python")
        self.assertLess(four.time_s, before[0].time_s)
        self.assertEqual((five.algorithm, five.time_s), (before[1].algorithm, before[1].time_s))
        self.assertIn("halving_of_python: needs a power of two of nodes", five.reason)
        self.assertEqual(self.asked(op="all_gather").algorithm != "halving_of_python", True)
        # Each call once: what a function says of it is kept.
        self.asked(size="65MB")
        self.assertEqual(len(calls), len(set(calls)))
        # By hand: 3/2 of the payload over the NICs of a node, 7/4 over a GPU's links.
        heard = {}
        lockstep.add_collective("hears_of_python", lambda call: heard.update(call))
        self.asked(nodes=4)
        line = next(each for each in self.asked(nodes=4).candidates
                    if each.algorithm == "halving_of_python")
        self.assertAlmostEqual(
            line.time_s,
            heard["start_s"] + 4 * heard["hop_latency_s"]
            + 64e6 * (1.5 / heard["node_bytes_per_s"] + 1.75 / heard["nvlink_bytes_per_s"]))

    def test_a_shape_of_python_says_which_links_it_loads(self):
        def pairs(call):
            nodes = sorted({node for node, _ in call["members"]})
            place = {member: at for at, member in enumerate(call["members"])}
            each = len(place) // len(nodes)
            edges = []
            for distance in (1, 2):
                for node, rail in call["members"]:
                    other = nodes[nodes.index(node) ^ distance]
                    sent = 2 * distance / len(nodes) / each
                    edges.append((place[node, rail], place[other, rail], sent))
            return {"nvlink_bytes": 1.75, "edges": edges}

        def eager(call):  # beyond doubt the fastest, yet no faster than the links
            if call["op"] != "all_reduce" or call["nodes"] != 4:
                return None
            sent = 0.1875
            return {"latency_s": 1e-9, "nic_bytes": sent, "nvlink_bytes": 0,
                    "s_per_byte": sent / (call["efficiency"] * call["nic_bytes_per_s"])}

        lockstep.add_collective("pairs_of_python", eager, pairs)
        shaped = lockstep.comm(self.TRAFFIC).rows[0]
        self.assertEqual(shaped.algorithm, "pairs_of_python")
        # To the other node of the leaf goes a third of what is sent. The rest, 1/8 of the payload
        # from each of the leaf's 16 GPUs, takes its one way up, in the time of two payloads on a
        # NIC, where a GPU's own NIC sends 3/16 of one.
        self.assertAlmostEqual(shaped.network_bytes_per_byte, 0.1875)
        self.assertAlmostEqual(shaped.time_s / shaped.full_fabric_time_s, 2 / 0.1875, places=3)
        lockstep.add_collective("far_of_python", lambda call: eager(call) and {
            **eager(call), "latency_s": 1e-10}, lambda call: {"edges": [(0, 1, 0.5)]})
        with self.assertRaises(lockstep.LockstepError) as caught:
            lockstep.comm(self.TRAFFIC)
        self.assertIn("found an edge of 0.5 bytes from 0 to 1", str(caught.exception))

    def test_what_a_collective_does_wrong_names_it(self):
        wrong = {
            "reduce": ({"latency_s": 0, "s_per_byte": 1e-15, "nic_bytes": 1},
                       "in which links carry it"),
            "broadcast": ({"latency_s": 1e-6, "per_byte": 1, "nic_bytes": 1},
                          'found the key "per_byte"; allowed: protocol, latency_s'),
            "reduce_scatter": ({"latency_s": "soon", "s_per_byte": 1},
                               "found 'soon'; allowed: of latency_s, seconds"),
            "all_to_all": (7, "found 7; allowed: candidates"),
            "send_receive": ({"s_per_byte": 1}, 'a dictionary with "latency_s"'),
        }
        for op, (answer, found) in wrong.items():
            name = f"wrong_{op}_of_python"
            # Only while it is tested: it stays in the table for the tests that follow.
            state = {"answer": answer}
            lockstep.add_collective(
                name, lambda call, op=op, state=state: state["answer"] if call["op"] == op
                and call["nodes"] == 3 else None)
            with self.assertRaises(lockstep.UsageError) as caught:
                self.asked(op=op, nodes=3)
            self.assertIn(f'collective "{name}" (an extension), {op}', str(caught.exception))
            self.assertIn(found, str(caught.exception))
            lockstep.remove(name)
            self.assertNotIn(name, self.asked(op=op, nodes=3).algorithm)
        with self.assertRaises(lockstep.UsageError) as caught:
            lockstep.add_collective("ring", halving)
        self.assertIn("found twice", str(caught.exception))

    def test_a_cell_that_is_run_again_replaces_what_it_added(self):
        def offers(scale):
            def law(call):
                answer = halving(call)
                return answer if not isinstance(answer, dict) else {
                    **answer, "latency_s": scale * answer["latency_s"]}
            return law

        def line():
            return next((each for each in self.asked(nodes=4).candidates
                         if each.algorithm == "again_of_python"), None)

        lockstep.add_collective("again_of_python", offers(1))
        once = line()
        lockstep.add_collective("again_of_python", offers(3))
        self.assertAlmostEqual(line().latency_s, 3 * once.latency_s)
        lockstep.remove("again_of_python")
        self.assertIsNone(line())
        with self.assertRaisesRegex(lockstep.UsageError, "allowed: a name that Python added"):
            lockstep.remove("again_of_python")
        lockstep.add_collective("again_of_python", offers(1))
        self.assertEqual(line().latency_s, once.latency_s)
        lockstep.remove("again_of_python")

    def test_every_other_door_replaces_and_removes_too(self):
        queue = "research-cluster-easy"
        lockstep.add_queue_order("again_of_python", lambda job: -job["gpus"])
        widest = lockstep.run(queue, queue__order="again_of_python").json
        lockstep.add_queue_order("again_of_python", lambda job: job["gpus"])
        self.assertNotEqual(lockstep.run(queue, queue__order="again_of_python").json, widest)
        with self.assertRaisesRegex(lockstep.UsageError, "found knows_duration=True; allowed: knows"):
            lockstep.add_queue_order("again_of_python", lambda job: 1, knows_duration=True)
        lockstep.remove("again_of_python")
        with self.assertRaisesRegex(lockstep.ScenarioError, r"removed by lockstep.remove\(\)"):
            lockstep.run(queue, queue__order="again_of_python")
        job = {"model": "llama3_8b", "cluster": {"node": "dgx_h100"},
               "parallelism": {"tensor": 4, "pipeline": 2, "data": 1, "schedule": "again_of_python"},
               "batch": {"sequences": 8, "micro": 1, "tokens": 2048}}
        all_first = [f"F{i}" for i in range(8)] + [f"B{i}" for i in range(8)]

        def early(call):  # 1F1B: gradients as soon as they can be
            ahead = call["ranks"] - call["rank"]
            order = [f"F{i}" for i in range(ahead)]
            for i in range(8):
                order += [f"B{i}", f"F{i + ahead}"] if i + ahead < 8 else [f"B{i}"]
            return order

        lockstep.add_schedule("again_of_python", lambda call: all_first)
        before = lockstep.run(job)
        lockstep.add_schedule("again_of_python", early)
        self.assertLess(lockstep.run(job).peak_memory_gib, before.peak_memory_gib)
        with self.assertRaisesRegex(lockstep.UsageError, "found layout=v, .*as it was added"):
            lockstep.add_schedule("again_of_python", lambda call: all_first, layout="v")
        lockstep.remove("again_of_python")
        with self.assertRaisesRegex(lockstep.ScenarioError, "removed by"):
            lockstep.run(job)


class Processes(unittest.TestCase):
    FABRIC = {"kind": "fat_tree", "levels": 2, "leaf_ports_down": 16, "leaf_oversubscription": 4,
              "routing": "adaptive"}
    TRAINING = {"name": "training", "nodes": {"count": 4, "stride": 2}, "model": "llama3_8b",
                "parallelism": {"tensor": 8, "data": 4, "sharding": "zero3"},
                "batch": {"sequences": 8, "micro": 1, "tokens": 2048}}

    def beside(self, process):
        tenant = {"name": "tenant", "from": [1, 3], "to": [5, 7], "size": "4 GB",
                  "process": process}
        return lockstep.run({"cluster": {"node": "dgx_h100", "nodes": 8, "fabric": self.FABRIC},
                             "jobs": [self.TRAINING], "background": [tenant]}).jobs

    def test_a_process_of_python_sends_when_it_says(self):
        lockstep.add_traffic_process("silent_of_python", lambda call: None)
        lockstep.add_traffic_process(
            "once_of_python",
            lambda call: (call["now_s"], [call["size_bytes"], 0]) if call["round"] == 0 else None)
        self.assertEqual(self.beside("silent_of_python")[0].slowdown, 1)
        training, tenant = self.beside("once_of_python")
        self.assertGreater(training.slowdown, 1)
        self.assertAlmostEqual(tenant.bytes, 4e9, delta=1)

    def test_what_a_process_does_wrong_names_it(self):
        wrong = {"early_of_python": (lambda call: call["now_s"] - 1, "round 0: a round at -1 s"),
                 "wordy_of_python": (lambda call: "now", "round 0: found 'now'; allowed: None")}
        for name, (process, found) in wrong.items():
            lockstep.add_traffic_process(name, process)
            with self.assertRaises(lockstep.ScenarioError) as caught:
                self.beside(name)
            self.assertEqual(caught.exception.pointer, "/background/0/process")
            self.assertIn(found, caught.exception.found)


class Stubs(unittest.TestCase):
    def parsed(self, name):
        path = pathlib.Path(lockstep.__file__).parent / name
        return ast.parse(path.read_text(encoding="utf-8")).body

    def test_functions_take_what_their_stubs_say(self):
        functions = {each.name: each for each in self.parsed("__init__.pyi")
                     if isinstance(each, ast.FunctionDef)}
        self.assertTrue(set(functions) < set(lockstep.__all__))
        for name in ["run", "comm", "tune", "plan", "learn", "replay", "validate"]:
            with self.subTest(name):
                declared = inspect.signature(getattr(lockstep, name)).parameters.values()
                keywords = [each.name for each in declared if each.kind == each.KEYWORD_ONLY]
                stub = functions[name].args
                self.assertEqual([each.arg for each in stub.kwonlyargs], keywords)
                # What may be left out is the same, too.
                optional = [each.default is not each.empty for each in declared
                            if each.kind == each.POSITIONAL_ONLY]
                self.assertEqual([bool(stub.defaults)] * len(stub.posonlyargs), optional)
                self.assertIn(ast.get_docstring(functions[name]).split()[0],
                              inspect.getdoc(getattr(lockstep, name)))

    def test_classes_have_the_members_that_their_stubs_say(self):
        classes = [each for each in self.parsed("answers.pyi") if isinstance(each, ast.ClassDef)]
        self.assertGreater(len(classes), 50)
        for each in classes:
            made = getattr(lockstep.answers, each.name)
            names = {part.name for part in each.body if isinstance(part, ast.FunctionDef)}
            missing = {name for name in names if not hasattr(made, name)}
            self.assertEqual(missing - {"__getattr__"}, set(), each.name)
        members = {part.name for each in classes if each.name == "StepAnswer"
                   for part in each.body if isinstance(part, ast.FunctionDef)}
        self.assertEqual(members, {field["name"] for field in _lockstep.fields()["step"]})

    def test_it_says_that_it_is_typed(self):
        self.assertTrue((pathlib.Path(lockstep.__file__).parent / "py.typed").exists())


if __name__ == "__main__":
    unittest.main()
