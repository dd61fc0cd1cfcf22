"""From a source archive to a first answer: pip builds a wheel of it and installs that into a
virtual environment. It compiles the library anew, which takes minutes without ccache.

The environment may say LOCKSTEP, a program that has to give the same answer, and LOCKSTEP_WHEELS, a
folder in which the wheel is left.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "package"))
import lockstep_build  # noqa: E402

ASK = """
import pathlib, sys
import lockstep
shipped = lockstep.scenarios()
assert all(pathlib.Path(each["file"]).is_relative_to(sys.prefix) for each in shipped), shipped
assert len(shipped) > 60
for name in ["llama3-405b-16k", "no-checkpoints", "two-jobs-one-spine"]:
    assert lockstep.run(name).gpus if name != "two-jobs-one-spine" else lockstep.run(name).jobs
assert len(lockstep.validate(source="bloom")["rows"]) > 10
assert len(lockstep.sweep("llama3-405b-16k", {"batch.sequences": [2048, 4096]})) == 2
file = next(each["file"] for each in shipped if each["name"] == "llama3-405b-16k")
print(lockstep.run(file).json, end="")
"""


def run(*words, **options):
    ran = subprocess.run(
        [str(word) for word in words], text=True, capture_output=True, check=False, **options
    )
    if ran.returncode != 0:
        raise AssertionError(f"{words}\n{ran.stdout[-4000:]}\n{ran.stderr[-4000:]}")
    return ran.stdout


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.archive = cls.folder / lockstep_build.build_sdist(folder.name)
        with tarfile.open(cls.archive) as archive:
            cls.names = archive.getnames()
            archive.extractall(cls.folder)
        cls.source = cls.folder / cls.archive.name.removesuffix(".tar.gz")

    def test_an_archive_of_the_same_sources_is_the_same_bytes(self):
        first = self.archive.read_bytes()
        lockstep_build.build_sdist(str(self.folder))
        self.assertEqual(self.archive.read_bytes(), first)
        self.assertTrue(any(name.endswith("/PKG-INFO") for name in self.names))
        self.assertFalse(any("/build" in name and "/build/" in name for name in self.names))

    def test_metadata_is_said_without_a_compiler(self):
        with tempfile.TemporaryDirectory() as folder:
            name = lockstep_build.prepare_metadata_for_build_wheel(folder)
            self.assertEqual(os.listdir(folder), [name])
            said = (pathlib.Path(folder) / name / "METADATA").read_text(encoding="utf-8")
        self.assertTrue(said.startswith("Metadata-Version: 2.1\nName: lockstep\n"), said[:80])
        self.assertIn(f"\nVersion: {lockstep_build.version()}\n", said)

    def test_pip_installs_it_and_it_answers_without_the_source(self):
        python = self.folder / "venv" / "bin" / "python"
        run(sys.executable, "-m", "venv", "--system-site-packages", self.folder / "venv")
        # To ccache, where there is one, these are the objects of the release preset.
        environment = os.environ | {
            "CCACHE_BASEDIR": str(self.source),
            "LOCKSTEP_CMAKE": "-DCMAKE_CXX_COMPILER=g++ -DLOCKSTEP_WERROR=ON",
            "PIP_NO_INDEX": "1",
        }
        pip = [python, "-m", "pip", "--disable-pip-version-check"]
        run(*pip, "wheel", "--no-build-isolation", "--no-deps", "-w", self.folder / "wheels",
            self.source, env=environment)  # fmt: skip
        (wheel,) = (self.folder / "wheels").glob("*.whl")
        self.check_contents(wheel)
        if os.environ.get("LOCKSTEP_WHEELS"):
            shutil.copy(wheel, os.environ["LOCKSTEP_WHEELS"])
        run(*pip, "install", "--no-deps", wheel, env=environment)
        for path in sorted(self.source.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        answer = run(python, "-c", ASK, cwd=self.folder)
        program = os.environ.get("LOCKSTEP")
        if program:
            shipped = next((self.folder / "venv").rglob("scenarios/llama3-405b-16k.json"))
            self.assertEqual(answer, run(program, "run", shipped, "--format", "json"))
        run(*pip, "uninstall", "-y", "lockstep")
        self.assertFalse(list((self.folder / "venv").rglob("*lockstep*")))

    def check_contents(self, wheel):
        with zipfile.ZipFile(wheel) as packed:
            names = set(packed.namelist())
        for name in [
            "__init__.py",
            "__init__.pyi",
            "answers.pyi",
            "py.typed",
            "share/lockstep/presets/gpus/h100_sxm5_80gb.json",
            "share/lockstep/scenarios/scenario.schema.json",
            "share/lockstep/scenarios/llama3-405b-16k.json",
            "share/lockstep/reference/training.json",
        ]:
            self.assertIn("lockstep/" + name, names)


if __name__ == "__main__":
    unittest.main()
