#!/usr/bin/env python3
"""The runner itself: what fits, what does not, and what --update writes."""
import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
loader = importlib.machinery.SourceFileLoader("golden", str(HERE / "run"))
golden = importlib.util.module_from_spec(importlib.util.spec_from_loader("golden", loader))
loader.exec_module(golden)


def check(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: found {found!r}, not {wanted!r}")


def fits(expected, printed):
    return golden.fits(expected.split("\n"), printed.split("\n"))


check("the same", fits("a\nb", "a\nb"), True)
check("a line more", fits("a", "a\nb"), False)
check("a line less", fits("a\nb", "a"), False)
check("text within a line", fits("a ... c", "a b b c"), True)
check("no text within a line", fits("a...c", "ac"), True)
check("a dot is a dot", fits("a.c...", "abc"), False)
check("lines in the middle", fits("a\n...\nc", "a\nb\nb\nc"), True)
check("no line in the middle", fits("a\n...\nc", "a\nc"), True)
check("a line that comes again", fits("a\n...\nc", "a\nc\nb\nc"), True)
check("two gaps", fits("...\nb\n...\nd", "a\nb\nc\nb\nd"), True)
check("an end that is not there", fits("a\n...\nd", "a\nb\nc"), False)
check("lines of errors alone", fits("a\n2> ...", "a\n2> b\n2> c"), True)
check("output is no error", fits("2> ...", "a"), False)
check("an empty line of output", fits("a\n\nb", "a\n\nb"), True)


def updated(expected, printed):
    return "\n".join(golden.updated(expected.split("\n"), printed.split("\n")))


check("what fits is kept", updated("a ...\n...", "a b\nc"), "a ...\n...")
check("all that was printed", updated("a\nb", "a\nc\nd"), "a\nc\nd")
check("an elision stays", updated("a 1\n...\nz 1", "a 1\nb\nc\nz 2"), "a 1\n...\nz 2")
check("a line that fits keeps its dots", updated("v ...\nb", "v 7\nc"), "v ...\nc")
check("the nearest line", updated("...\nstep 1.23 s\n...", "a\nstep 1.24 s\nb"), "...\nstep 1.24 s\n...")

with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / "of.test"
    program = pathlib.Path(folder) / "lockstep"
    program.write_text("#!/bin/sh\necho out $1; echo err >&2; exit 3\n")
    program.chmod(0o755)
    good = ("Prose.\n\n  $ lockstep 1\n  out 1\n  2> err\n  [3]\n\n"
            "  $ cat <<END\n  > a\n  >\n  > $PWD\n  > END\n  a\n\n  $PWD\n")

    def run(text, *options):
        file.write_text(text)
        return subprocess.run([sys.executable, HERE / "run", "--program", program, file, *options],
                              capture_output=True, text=True)

    check("a file that holds", (run(good).returncode, run(good).stdout), (0, ""))
    wrong = good.replace("out 1", "out 2")
    ran = run(wrong)
    check("a file that does not", ran.returncode, 1)
    check("the difference", "-  out 2\n+  out 1\n" in ran.stdout, True)
    check("it is left alone", file.read_text(), wrong)
    check("--update", (run(wrong, "--update").returncode, file.read_text()), (0, good))
    check("no command", "no command" in run("Prose.\n").stdout, True)
    check("lines below no command", "below no command" in run("  $ true\n\nProse.\n  a\n").stdout, True)

    def helper(name, document, *words):
        ran = subprocess.run([sys.executable, HERE / "bin" / name, *words], input=document,
                             capture_output=True, text=True)
        return ran.returncode, ran.stdout

    text = '{"x": {"b": [1, {"c": "d"}]}, "e": null}'
    check("json", helper("json", text, "x.b.#", "x.b.1.c", "e", "f", "x.?"),
          (0, "2\nd\nnull\n(none)\nb\n"))
    check("json, every item", helper("json", "[[1], [2]]", "*.0"), (0, "1\n2\n"))
    check("holds", helper("holds", text, "x.b[1].c == 'd'", "near(1, 1.000001)"), (0, ""))
    check("holds not", helper("holds", text, "x.b[0] > 1"),
          (1, "not so: x.b[0] > 1\n   x.b[0] = 1\n   1 = 1\n"))
