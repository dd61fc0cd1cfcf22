"""What the Containerfile copies and runs is there: programs, presets, options, targets, the package's
name. It is read, not built: that takes a container engine, and minutes (container_test.sh)."""

import json
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE = ROOT / "tools" / "package" / "Containerfile"


class Containerfile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        text = PLACE.read_text(encoding="utf-8").replace("\\\n", " ")
        cls.lines = [line.split(None, 1) for line in text.split("\n") if line and line[0] != "#"]
        cls.commands = " && ".join(words for name, words in cls.lines if name == "RUN")
        cls.cmake = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")

    def test_what_it_runs_is_there(self):
        programs = re.findall(r"(?:^|&& )(tools/\S+)", self.commands)
        self.assertIn("tools/setup", programs)
        for program in programs:
            self.assertTrue((ROOT / program).stat().st_mode & 0o100, program)
        presets = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))
        for kind, found in [("configurePresets", r"cmake --preset (\S+)"),
                            ("buildPresets", r"--build --preset (\S+)")]:
            names = {preset["name"] for preset in presets[kind]}
            self.assertTrue(set(re.findall(found, self.commands)) <= names, kind)
        options = re.findall(r"-D(LOCKSTEP_\w+)=", self.commands)
        self.assertEqual(len(options), 3)
        for option in options:
            self.assertRegex(self.cmake, rf"option\({option}\b")
        for target in re.findall(r"--target (\S+)", self.commands):
            self.assertRegex(self.cmake, rf"add_executable\({target}\b")

    def test_what_it_copies_is_there(self):
        stages = [words.split(" AS ")[1] for name, words in self.lines
                  if name == "FROM" and " AS " in words]
        copies = [words.split() for name, words in self.lines if name == "COPY"]
        self.assertEqual(len(copies), 2)
        for words in copies:
            if words[0].startswith("--from="):
                self.assertIn(words[0].removeprefix("--from="), stages)
                # Debian's own name for the package, NAME_VERSION-RELEASE_ARCHITECTURE.deb.
                packed = (ROOT / "tools/package/packages.cmake").read_text(encoding="utf-8")
                self.assertIn("set(CPACK_PACKAGE_NAME lockstep)", packed)
                self.assertIn("set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)", packed)
                self.assertEqual(words[1], "/source/build/lockstep_*.deb")
            else:
                self.assertTrue((ROOT / words[0]).exists(), words)

    def test_no_build_of_this_machine_is_copied(self):
        """CMake refuses a folder that was configured at another path."""
        ignored = (ROOT / ".containerignore").read_text(encoding="utf-8").split()
        self.assertIn("build*", ignored)


if __name__ == "__main__":
    unittest.main()
