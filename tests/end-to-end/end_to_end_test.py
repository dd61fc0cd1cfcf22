#!/usr/bin/env python3
"""tools/end-to-end without PyTorch or a card: the plan, the rows, and that lockstep reads them.

The environment variable LOCKSTEP names the program.
"""

import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, "tools", "end-to-end")
sys.path.insert(0, TOOL)

import measure  # noqa: E402
import plan  # noqa: E402

CARD = {"device": "NVIDIA H100 80GB HBM3", "memory_gib": 79.1, "torch": "2.9.0", "driver": "made up"}


def made_up(request):
    """A measurement as training.py prints it: 400 TFLOP/s, of what is not attention."""
    shape = plan.Shape(**request["shape"])
    tokens = request["sequences"] * shape.tokens
    flops = (8 if request["recompute"] == "full" else 6) * shape.parameters * tokens
    seconds = flops / 400e12
    return {"step_seconds": seconds, "step_p10": 0.99 * seconds, "step_p90": 1.02 * seconds,
            "steps": 50, "first_loss": 11.0, "reserved_memory_gib": 30.0, "peak_memory_gib": 29.0,
            "gpu_power_w": 650.0, "sm_mhz": 1700.0}


def train(argument):
    return CARD if argument == "--probe" else made_up(json.loads(argument))


class EndToEnd(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "measured.json")
        self.out = io.StringIO()

    def measure(self, runs, train, kind=None):
        return measure.measure(runs, self.path, kind, train=train, out=self.out, date="2026-11-21")

    def rows(self):
        with open(self.path, encoding="utf-8") as file:
            return json.load(file)["rows"]

    def lockstep(self, *arguments):
        return subprocess.run([os.environ["LOCKSTEP"], *arguments], capture_output=True, text=True,
                              check=False)

    def program(self, *arguments, **environment):
        return subprocess.run([sys.executable, os.path.join(TOOL, "measure.py"), *arguments],
                              capture_output=True, text=True, check=False,
                              env={**os.environ, **environment})

    def test_plan_has_shapes_from_a_tenth_to_eight_billion(self):
        billions = [shape.parameters / 1e9 for shape in plan.SHAPES]
        self.assertLess(min(billions), 0.15)
        self.assertGreater(max(billions), 8)
        for shape in plan.SHAPES:
            # The name says what it holds, as its makers round it.
            if shape.name.endswith("b") and shape.name != "llama-3.2-1b":
                said = float(shape.name.rsplit("-", 1)[1][:-1])
                self.assertLess(abs(shape.parameters / 1e9 / said - 1), 0.1, shape.name)
            self.assertEqual(shape.heads % shape.kv_heads, 0)
            self.assertTrue(shape.source)
        names = [run.name for run in plan.runs_of()]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual({run.recompute for run in plan.runs_of()}, {"none", "full"})

    def test_every_row_is_read_and_predicted(self):
        runs = plan.runs_of()
        self.assertEqual(self.measure(runs, train), 0)
        self.assertEqual(len(self.rows()), len(runs))
        done = self.lockstep("validate", "--rows", self.path, "--format", "json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for row in json.loads(done.stdout)["rows"]:
            self.assertEqual(row["status"], "predicted", row["reason"])
            self.assertEqual(row["dense"], "olmoe" not in row["id"])
            self.assertEqual(row["stack"], "pytorch_eager")
            self.assertEqual(row["printed_stack"], "pytorch-eager")
            self.assertGreater(row["predicted_step_s"], 0)
            self.assertEqual(row["measured_memory_gib"], 30)
            self.assertEqual(row["measured_gpu_power_w"], 650)
            self.assertGreater(row["predicted_gpu_power_w"], 100)
            # Nothing is left open but what no preset can know.
            known = ("release ", "nodes: 1 ", "stack: pytorch_eager is composed ")
            open_ends = [a for a in row["assumptions"] if not a.startswith(known)]
            self.assertEqual(open_ends, [])

    def test_a_profile_of_the_card_corrects_the_rows(self):
        self.measure(plan.runs_of(["llama-1.1b"]), train)
        profile = os.path.join(self.folder.name, "card.json")
        sides = [(2048, 2048), (5632, 2048), (2048, 5632), (32000, 2048)]
        slow = [{"m": m, "n": n, "k": k, "precision": "bf16", "load": "sustained",
                 "time": 2 * m * n * k / 150e12}
                for m in (2048, 4096, 8192, 16384, 32768) for n, k in sides]
        with open(profile, "w", encoding="utf-8") as file:
            json.dump({"gpu": "h100_sxm5_80gb", "gemm": slow}, file)
        steps = {}
        for name, arguments in {"law": (), "profile": ("--profile", profile)}.items():
            done = self.lockstep("validate", "--rows", self.path, "--format", "json", *arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            steps[name] = [row["predicted_step_s"] for row in json.loads(done.stdout)["rows"]]
        for law, profiled in zip(steps["law"], steps["profile"]):
            self.assertGreater(profiled, 1.1 * law)

    def test_out_of_memory_is_a_row_and_larger_batches_are_left_out(self):
        def short(argument):
            if argument != "--probe" and json.loads(argument)["sequences"] > 2:
                return {"outcome": "oom"}
            return train(argument)

        runs = [run for run in plan.runs_of(["gpt-1.3b"]) if run.recompute == "none"]
        self.assertEqual(self.measure(runs, short), 0)
        outcomes = [(row["global_batch"], row.get("outcome")) for row in self.rows()]
        self.assertEqual(outcomes, [(1, None), (2, None), (4, "oom")])
        done = self.lockstep("validate", "--rows", self.path, "--format", "json")
        statuses = [row["status"] for row in json.loads(done.stdout)["rows"]]
        self.assertEqual(statuses, ["predicted", "predicted", "oom"])

    def test_what_cannot_fit_is_not_tried(self):
        self.measure(plan.runs_of(["llama-3-8b"]),
                     lambda a: {**CARD, "memory_gib": 40} if a == "--probe" else self.fail(a))
        self.assertFalse(os.path.exists(self.path))
        self.assertIn("left out: it does not fit", self.out.getvalue())

    def test_a_failed_run_costs_its_row_alone(self):
        def broken(argument):
            if argument != "--probe" and json.loads(argument)["sequences"] == 4:
                raise measure.RunFailed("wrong result: the first loss is 3 where 10.8 was due")
            return train(argument)

        runs = [run for run in plan.runs_of(["gpt-125m"]) if run.recompute == "none"]
        self.assertEqual(self.measure(runs, broken), measure.FAILED)
        self.assertEqual([row["global_batch"] for row in self.rows()], [1, 2, 8, 16])
        self.assertIn("failed: wrong result", self.out.getvalue())

    def test_an_interrupt_keeps_what_was_measured(self):
        def interrupted(argument):
            if argument != "--probe" and json.loads(argument)["sequences"] == 4:
                raise KeyboardInterrupt
            return train(argument)

        runs = [run for run in plan.runs_of(["gpt-125m"]) if run.recompute == "none"]
        self.assertEqual(self.measure(runs, interrupted), measure.INTERRUPTED)
        self.assertEqual(len(self.rows()), 2)

    def test_an_unknown_card_needs_its_preset_named(self):
        unknown = {**CARD, "device": "NVIDIA GeForce RTX 4090"}
        runs = plan.runs_of(["gpt-125m"])[:1]
        probe = lambda a: unknown if a == "--probe" else train(a)  # noqa: E731
        with self.assertRaisesRegex(measure.NoCard, "no preset is known for NVIDIA GeForce RTX 4090"):
            self.measure(runs, probe)
        self.assertEqual(self.measure(runs, probe, kind="H100-PCIe-80GB"), 0)
        self.assertEqual(self.rows()[0]["gpu"]["kind"], "H100-PCIe-80GB")

    def test_presets_of_all_cards_are_there(self):
        done = self.lockstep("list", "gpus")
        for kind in plan.CARDS.values():
            self.assertIn(kind.lower().replace("-", "_"), done.stdout)

    def test_without_pytorch_one_line_and_exit_3(self):
        with open(os.path.join(self.folder.name, "torch.py"), "w", encoding="utf-8") as file:
            file.write("raise ImportError('none here')\n")
        done = self.program("-o", self.path, PYTHONPATH=self.folder.name)
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"\Ameasure.py: there is no PyTorch for .*: none here\n\Z")
        self.assertFalse(os.path.exists(self.path))

    def test_mistakes_on_the_command_line_exit_2(self):
        self.assertEqual(self.program().returncode, 2)
        self.assertEqual(self.program("-o", "/nonexistent/x.json").returncode, 2)
        done = self.program("--list", "--only", "gpt-126m")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--only: found gpt-126m; allowed: gpt-125m", done.stderr)

    def test_batches_and_recomputation_can_be_chosen(self):
        done = self.program("--list", "--only", "olmoe-6.9b", "--sequences", "1,4", "--recompute", "none")
        names = [line.split()[0] for line in done.stdout.splitlines()]
        self.assertEqual(names, ["olmoe-6.9b-s4096-b1-none", "olmoe-6.9b-s4096-b4-none"])
        done = self.program("--list", "--sequences", "1,3")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--sequences: found 3; allowed: 1, 2, 4, 8, 16", done.stderr)

    def test_list_needs_no_card(self):
        done = self.program("--list", "--only", "gpt-125m,llama-3-8b")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(done.stdout.splitlines()), 2 * len(plan.SEQUENCES) * 2)


if __name__ == "__main__":
    unittest.main()
