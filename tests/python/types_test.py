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


tuned: lockstep.answers.TuneAnswer = lockstep.tune("llama3-405b-16k", keep=2)
fastest: float = tuned.best[0].step_s
share: dict[str, float] = tuned.best[0].waterfall_shares
served: lockstep.answers.ServingTuneAnswer = lockstep.tune("llama3-70b-h100-chat")
rate: float | None = served.best[0].goodput_requests_per_s
plan: lockstep.answers.PlanAnswer = lockstep.plan("train-70b-15t-tokens")
chosen: str | None = plan.choice
late: list[float] = [each.time_s.p95 for each in plan.candidates if each.time_s is not None]
service: lockstep.answers.ServingPlanAnswer = lockstep.plan("serve-70b")
least: list[int | None] = [option.gpus for option in service.options]
reduce: lockstep.answers.CollectivesAnswer = lockstep.comm(op="all_reduce", node="dgx_h100")
busbw: list[tuple[float, str]] = [(row.busbw_bytes_per_s, row.algorithm) for row in reduce.rows]
incast: lockstep.answers.TrafficAnswer = lockstep.comm("incast-32")
ends: float = incast.traffic[0].end_s + incast.end_s
held: lockstep.answers.RowsAnswer = lockstep.validate(source="bloom")
errors: dict[str, float] = {n: e.median_abs_error for n, e in held.summary.by_source.items()}
kernels: lockstep.answers.PointsAnswer = lockstep.validate(gemm="gemm.json")
measured: float | None = kernels.points[0].measured_us
learnt = lockstep.learn([{"step": "3 s"}])
takes: float = learnt.kinds[0].kernels_take
version: str = learnt.lockstep_version


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


def of_commands(
    tuned: lockstep.answers.TuneAnswer,
    plan: lockstep.answers.PlanAnswer,
    reduce: lockstep.answers.CollectivesAnswer,
    held: lockstep.answers.RowsAnswer,
) -> object:
    late: float = plan.candidates[0].time_s.p95
    return tuned.best[0].steps, reduce.rows[0].busbw, held.summary.by_source["bloom"].median


takes: str = lockstep.learn([{"step": "3 s"}]).kinds[0].kernels_take
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
        self.assertEqual(sorted(int(line.split(":")[1]) for line in found), [4, 5, 9, 13, 13, 22, 23, 23, 23, 26], said)


if __name__ == "__main__":
    if not shutil.which("mypy"):
        print("skipped: needs mypy")
        sys.exit(0)
    unittest.main()
