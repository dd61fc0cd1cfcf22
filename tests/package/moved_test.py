#!/usr/bin/env python3
"""tools/package/moved finds a number that differs, in whatever kind of answer it is."""

import json
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

MOVED = pathlib.Path(__file__).resolve().parents[2] / "tools/package/moved"
# Stands for a program: what it was called with, as an answer with this much of everything.
PROGRAM = """#!/bin/sh
cat <<JSON
{"wait_mean_s": %(scale)s, "rows": [{"time_us": 5}, {"time_us": %(scale)s}],
 "scenario": {"nodes": %(scale)s}, "holds": true}
JSON
"""
SCENARIOS = {"queue.json": {"queue": {}}, "comm.json": {"collective": {}},
             "plan.json": {"candidates": {}}, "step.json": {"model": "m"},
             "sweep.json": {"axes": []}, "queue.schema.json": {"queue": {}}}


class Moved(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "scenarios").mkdir()
        for name, text in SCENARIOS.items():
            (self.folder / "scenarios" / name).write_text(json.dumps(text))

    def program(self, scale):
        path = self.folder / f"program-{scale}"
        path.write_text(PROGRAM % {"scale": scale})
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def rows(self, old, new):
        ran = subprocess.run([sys.executable, MOVED, old, new, self.folder / "scenarios"],
                             check=True, capture_output=True, text=True)
        self.assertIn("4 scenarios compared.", ran.stderr)
        return ran.stdout.strip().split("\n")[2:]

    def test_every_kind_of_answer_is_compared_and_what_it_is_about_is_shown(self):
        rows = self.rows(self.program(1), self.program(2))
        self.assertEqual([row.split(" | ")[0] for row in rows],
                         ["| comm.json", "| plan.json", "| queue.json", "| step.json"])
        self.assertEqual(rows[0], "| comm.json | wait_mean_s | 1 | 2 | +100.000 % |")

    def test_the_same_program_moves_nothing(self):
        self.assertEqual(self.rows(self.program(1), self.program(1)), [])


if __name__ == "__main__":
    unittest.main()
