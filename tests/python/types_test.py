"""What a type checker makes of the stubs: a program that uses the package is without a mistake to
mypy, in its strict mode, and what the package has not is one. Skipped where there is no mypy."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import lockstep

USES = """
import lockstep

answer = lockstep.run("llama3-405b-16k", cluster__nodes=1024)
asked = lockstep.run(model="llama3_8b", node="dgx_h100", nodes=2)
changed = lockstep.run("llama3-405b-16k", cluster={"nodes": 384}, stack={"preset": "nemo"})
listed = lockstep.run("llama3-405b-16k", set=["cluster.nodes=384"])
print(answer.step_s, answer.waterfall.table(), answer.sweep({"batch.sequences": [2048, 4096]}))
page: str = lockstep.tune(model="llama3_8b", node="dgx_h100", nodes=2, keep=2).page()
text: str = lockstep.plan(model="llama3_8b", training="200 B tokens", node="dgx_h100").json
rows = [lockstep.comm("allreduce-dgxh100").table(), lockstep.comm(op="all_reduce").table()]
rows += [lockstep.validate(source="bloom").table(), lockstep.learn([{"step": "3 s"}]).table()]
rows += [lockstep.replay("traces", node="dgx_h100", groups={"1": [0, 1]}), lockstep.sweep("checkpoint-interval")]
lockstep.add_queue_order("widest_first", lambda job: -float(job["gpus"]))
lockstep.remove("widest_first")


def told(step: lockstep.answers.StepAnswer) -> tuple[float, list[float], float | None]:
    return step.step_s, [part.seconds for part in step.waterfall], step.peak_memory_gib


try:
    lockstep.run({"model": "llama3_405"})
except lockstep.ScenarioError as error:
    where: str = error.pointer
    nearest: str | None = error.suggestion
"""
MISTAKES = """
import lockstep

lockstep.validate(sources="bloom")
lockstep.runs("llama3-405b-16k")


def told(step: lockstep.answers.StepAnswer) -> str:
    return step.step_s


def misspelt(step: lockstep.answers.StepAnswer) -> object:
    return step.step_ss, step.waterfall[0].second
"""


def complaints(text):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "program.py"
        path.write_text(text, encoding="utf-8")
        ran = subprocess.run(
            ["mypy", "--strict", "--python-executable", sys.executable, "--cache-dir",
             os.path.join(folder, "cache"), str(path)],
            env={**os.environ, "MYPYPATH": str(pathlib.Path(lockstep.__file__).parents[1])},
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
    return [line for line in ran.stdout.split("\n") if ": error: " in line], ran.stdout + ran.stderr


class Types(unittest.TestCase):
    def test_a_program_that_uses_the_package_is_without_a_mistake(self):
        found, said = complaints(USES)
        self.assertEqual(found, [])
        self.assertIn("no issues found", said)

    def test_what_the_package_has_not_is_a_mistake(self):
        found, said = complaints(MISTAKES)
        self.assertEqual(sorted(int(line.split(":")[1]) for line in found), [4, 5, 9, 13, 13], said)


if __name__ == "__main__":
    if not shutil.which("mypy"):
        print("skipped: needs mypy")
        sys.exit(0)
    unittest.main()
