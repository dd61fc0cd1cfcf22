"""Mistakes are exceptions with the line of the command line, and the place of the mistake."""

import json
import os
import pickle
import signal
import threading
import time
import unittest
import warnings
from decimal import Decimal

import lockstep
from support import JOB, InFolder, program


def changed(**members):
    return json.dumps(JOB | members)


# Texts of scenarios, each with something else that is wrong.
WRONG = {
    "not JSON": '{"model": ',
    "nothing": "",
    "a list": "[]",
    "an unknown key": changed(modle="llama3_8b"),
    "an unknown name": changed(model="llama3_8c"),
    "another type": changed(batch=7),
    "out of bounds": changed(cluster={"node": "dgx_h100", "nodes": 0}),
    "a missing key": json.dumps({"model": "llama3_8b"}),
    "a wrong unit": changed(cluster={"node": "dgx_h100", "nodes": 2, "fabric": {"hop": "3 kg"}}),
    "no layout": changed(parallelism={"tensor": 3}),
    "does not fit": changed(model="llama3_405b"),
    "bytes that are no text": '{"model": "\udcff"}',
    "too deep": "[" * 5000,
}


class Errors(InFolder):
    def check_same(self, error, printed):
        # Options are keywords here.
        self.assertEqual(str(error) + "\n", printed.replace("--allow-oom", "allow_oom"))
        self.assertNotIn("\n", str(error))

    def test_a_mistake_in_a_scenario_is_the_line_of_the_command_line(self):
        for what, text in WRONG.items():
            with self.subTest(what):
                with open("job.json", "w", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(text)
                with self.assertRaises(lockstep.ScenarioError) as caught:
                    lockstep.run("job.json")
                status, _, printed = program("run", "job.json")
                self.assertEqual(status, 2)
                self.check_same(caught.exception, printed)
                self.assertEqual(caught.exception.file, "job.json")

    def test_the_parts_of_a_mistake(self):
        with self.assertRaises(lockstep.ScenarioError) as caught:
            lockstep.run(JOB, model="llama3_8c")
        error = caught.exception
        self.assertEqual((error.file, error.pointer), ("scenario", "/model"))
        self.assertEqual(error.suggestion, "llama3_8b")
        self.assertIn("llama3_8c", error.found)
        self.assertIn("gpt3_175b", error.allowed)
        self.assertIsInstance(error, ValueError)
        with self.assertRaises(lockstep.ScenarioError) as caught:
            lockstep.run(JOB, cluster__nodes=0)
        self.assertIsNone(caught.exception.suggestion)
        self.assertIn("(--set cluster.nodes=0)", str(caught.exception))
        with self.assertRaises(lockstep.ScenarioError) as caught:
            lockstep.learn([{"steps": "3 s"}])
        error = caught.exception
        self.assertEqual((error.file, error.pointer), ("steps", "/0/steps"))
        self.assertEqual(error.suggestion, "step")

    def test_files_that_are_none(self):
        for path in ["absent.json", ".", "", "absent-name", os.fsdecode(b"\xff")]:
            with self.subTest(path):
                with self.assertRaises(lockstep.ScenarioError) as caught:
                    lockstep.run(path)
                self.check_same(caught.exception, program("run", path)[2])

    def test_options_that_cannot_be(self):
        cases = [
            (lambda: lockstep.tune(JOB, tensor=[0]), 'tensor: found "0"'),
            (lambda: lockstep.tune(JOB, objective="cost"), 'objective: found "cost"'),
            (lambda: lockstep.run(JOB, fold=True, unfold=True), "found unfold beside it"),
            (lambda: lockstep.run(JOB, fold="yes"), "fold: found 'yes'; allowed: True"),
            (lambda: lockstep.run(JOB, nodes=4), "Did you mean cluster__nodes?"),
            (lambda: lockstep.run(JOB, node="dgx_b200"), "cluster__node='dgx_b200'"),
            (lambda: lockstep.run(JOB, fabric="rail_optimised"), "cluster__fabric="),
            (lambda: lockstep.run(JOB, tokens=4096), "batch__tokens=4096"),
            (lambda: lockstep.run(JOB, set=7), "set: found 7; allowed: a dictionary"),
            (lambda: lockstep.run(JOB, set=["batch.tokens=1", 2]), "allowed: a dictionary"),
            (lambda: lockstep.replay(7), "found 7; allowed: paths"),
            (lambda: lockstep.run("\ud800"), "allowed: a text that UTF-8 can say"),
            (lambda: lockstep.remove("nobody"), "found 'nobody'; allowed: a name that Python"),
            (lambda: lockstep.run(), "lockstep.run(): found no scenario; allowed: a path"),
            (lambda: lockstep.plan(), "found no plan; allowed: a path"),
            (lambda: lockstep.comm(), "a dictionary, or op=..., node=..."),
            (lambda: lockstep.run(5), "scenario: found 5; allowed: a path, the name of one"),
            (lambda: lockstep.learn(5), "steps: found 5; allowed: a path, or a list"),
            (lambda: lockstep.sweep("llama3-405b-16k", batch__sequences=[1, 2]),
             'allowed: axes: sweep(scenario, {"batch.sequences": [...]})'),
            (lambda: lockstep.run(node="dgx_h100"), "found it without model"),
            (lambda: lockstep.replay(), "no trace"),
            (lambda: lockstep.validate(sorce="bloom"), "Did you mean source?"),
            (lambda: lockstep.validate(source="blooom"), "bloom"),
            (lambda: lockstep.sweep(JOB), "no axes"),
        ]
        for ask, word in cases:
            with self.subTest(word):
                with self.assertRaises(lockstep.UsageError) as caught:
                    ask()
                self.assertIn(word, str(caught.exception))
                self.assertNotIn("--", str(caught.exception))

    def test_the_parts_of_a_mistake_on_the_command_line(self):
        with self.assertRaises(lockstep.LockstepError) as caught:
            lockstep.validate(source="blom")
        error = pickle.loads(pickle.dumps(caught.exception))
        self.assertIs(type(error), lockstep.UsageError)
        self.assertEqual((error.pointer, error.suggestion), ("", "bloom"))
        self.assertIn("blom", error.found)
        self.assertIn("mosaic", error.allowed)
        with self.assertRaises(lockstep.UsageError) as caught:
            lockstep.replay()
        self.assertIsNone(caught.exception.suggestion)

    def test_a_member_that_there_is_not_names_the_nearest(self):
        answer = lockstep.run(JOB)
        for ask, near in [(lambda: answer.step_ss, "step_s"),
                          (lambda: answer.stages[0].memory.needed_gb, "needed_gib")]:
            with self.assertRaisesRegex(AttributeError, f"Did you mean '{near}'"):
                ask()
        with self.assertRaisesRegex(AttributeError, "has no member 'colour'$"):
            _ = answer.colour

    def test_axes_that_cannot_be(self):
        cases = [
            ({"batch.sequences": []}, None, "batch.sequences: found no values; allowed: one or more"),
            ({"model": "llama3_8b"}, None, "model: found 'llama3_8b'; allowed: a list of values"),
            ({"batch.micro": 2}, None, "batch.micro: found 2; allowed: a list"),
            ([1, 2], None, r"found \[1, 2\]; allowed: a dictionary"),
            ({"batch.micro": [1]}, 0, "threads: found 0; allowed: a whole number from 1"),
            ({"batch.micro": [1]}, "two", "threads: found 'two'"),
        ]
        for axes, threads, line in cases:
            with self.subTest(line), self.assertRaisesRegex(lockstep.UsageError, line):
                lockstep.sweep(JOB, axes, threads=threads)
        # What no value could mend is no table of errors.
        with self.assertRaises(lockstep.ScenarioError) as caught:
            lockstep.sweep(JOB, {"batch.sequnces": [32, 64]})
        self.assertEqual(caught.exception.suggestion, "sequences")
        # Values may come one by one.
        rows = lockstep.sweep(JOB, {"batch.sequences": (16 * n for n in (1, 2))})
        self.assertEqual(len(rows), 2)

    def test_values_that_json_cannot_say(self):
        for ask, found in [
            (lambda: lockstep.run(JOB | {"model": {"llama3_8b"}}), "scenario.model: found {'llama3_8b'}"),
            (lambda: lockstep.run(JOB | {"list": [1, {"at": b"x"}]}), "scenario.list.1.at: found b'x'"),
            (lambda: lockstep.run(JOB, batch__tokens=Decimal(4096)), "batch.tokens: found Decimal"),
            (lambda: lockstep.run(JOB, set={"batch.tokens": object}), "batch.tokens: found <class"),
            (lambda: lockstep.run(JOB, trajectories=object), "trajectories: found <class"),
        ]:
            with self.subTest(found), self.assertRaises(lockstep.UsageError) as caught:
                ask()
            self.assertIn(found, str(caught.exception))
            self.assertIn("allowed: what JSON can say", str(caught.exception))
        with self.assertRaises(lockstep.ScenarioError):
            lockstep.run(JOB, batch__tokens=float("nan"))

    def test_what_does_not_fit_suggests_the_nearest_change_that_does(self):
        with self.assertRaises(lockstep.ScenarioError) as caught:
            lockstep.run(JOB, recompute="none", batch={"sequences": 64, "micro": 4})
        self.assertIsNotNone(caught.exception.suggestion)
        self.assertIn(f"the nearest change that fits: {caught.exception.suggestion}",
                      str(caught.exception))
        self.assertIn("(allow_oom predicts anyway)", str(caught.exception))
        self.assertIn("(allow_oom predicts anyway)", caught.exception.allowed)

    def test_a_misspelt_keyword_is_told_by_the_nearest(self):
        with self.assertRaises(lockstep.ScenarioError) as caught:
            lockstep.run(JOB, advize=True)
        self.assertEqual(caught.exception.suggestion, "advise")
        self.assertIn("Did you mean the keyword advise?", str(caught.exception))

    def test_a_dictionary_inside_itself_or_too_deep_is_one_line(self):
        inside, deep = {}, {}
        inside["model"] = inside
        at = deep
        for _ in range(3000):
            at["model"] = {}
            at = at["model"]
        for scenario in [inside, {"model": deep}]:
            with self.assertRaises(lockstep.UsageError) as caught:
                lockstep.run(scenario)
            self.assertLess(len(str(caught.exception)), 400)

    def test_the_end_that_a_function_asks_for_is_no_mistake(self):
        for end in [KeyboardInterrupt, SystemExit]:
            def order(job, end=end):
                raise end("enough")
            lockstep.add_queue_order("ends_of_python", order)
            with self.subTest(end), self.assertRaises(end) as caught:
                lockstep.run("research-cluster-easy", queue__order="ends_of_python")
            self.assertEqual(str(caught.exception), "enough")
        self.assertGreater(lockstep.run(JOB).step_s, 0)

    def test_a_claim_that_is_missed_is_a_warning(self):
        expected = {"expect": {"claim": "It is fast.", "that": ["mfu>=0.99"], "source": "made up"}}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answer = lockstep.run(JOB | expected)
        self.assertEqual([each.category for each in caught], [lockstep.LockstepWarning])
        self.assertIn("mfu", str(caught[0].message))
        self.assertEqual(caught[0].filename, __file__)
        self.assertFalse(answer.claim.bounds[0].kept)


class Threads(InFolder):
    def test_other_threads_run_during_a_simulation(self):
        begin_end = []

        def simulate():
            begin_end.append(time.perf_counter())
            lockstep.run("one-year-131072-gpus")
            begin_end.append(time.perf_counter())

        thread = threading.Thread(target=simulate)
        thread.start()
        seen = []
        while thread.is_alive():
            seen.append(time.perf_counter())
            time.sleep(0.001)
        begin, end = begin_end
        middle = [moment for moment in seen if begin + 0.2 * (end - begin) < moment]
        middle = [moment for moment in middle if moment < end - 0.2 * (end - begin)]
        self.assertTrue(middle)

    def test_several_threads_get_the_answers_of_one(self):
        alone = lockstep.run(JOB).json
        found = []
        threads = [
            threading.Thread(target=lambda: found.append(lockstep.run(JOB).json)) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [alone] * 8)

    def test_ctrl_c_stops_a_run_and_is_pythons_own_afterwards(self):
        # As in a program that was not started in the background of a shell.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        self.addCleanup(timer.cancel)
        with self.assertRaises(KeyboardInterrupt):
            lockstep.run("one-year-131072-gpus", trajectories=15_000, jobs=1)
        with self.assertRaises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


if __name__ == "__main__":
    unittest.main()
