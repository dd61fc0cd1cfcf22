"""What the tests of the Python package share. The environment says which package is tested, as
PYTHONPATH, and which program it is held against, as LOCKSTEP."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import lockstep

PROGRAM = os.environ["LOCKSTEP"]
SHARE = pathlib.Path(lockstep.__file__).parent / "share" / "lockstep"

# A job small enough for anything that simulates it many times.
JOB = {
    "model": "llama3_8b",
    "cluster": {"node": "dgx_h100", "nodes": 2},
    "parallelism": {"sharding": "zero3"},
    "batch": {"sequences": 16, "tokens": 8192},
    "recompute": "full",
    "stack": "hf_trainer",
}


def program(*words):
    """What the program prints for these words: status, standard output, standard error."""
    ran = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout, ran.stderr


class InFolder(unittest.TestCase):
    """Each test stands in an empty folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def write(self, name, text):
        pathlib.Path(name).write_text(text, encoding="utf-8")
        return name
