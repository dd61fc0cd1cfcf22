"""The examples of the package's README, run one after the other; their tables are pandas's."""

import doctest
import pathlib
import sys

README = pathlib.Path(__file__).resolve().parents[2] / "tools" / "python" / "README.md"

try:
    import pandas  # noqa: F401
except ImportError:
    print("skipped: needs pandas")
    sys.exit(0)

failed, attempted = doctest.testfile(str(README), module_relative=False)
assert attempted > 8, f"{attempted} examples in {README}"
sys.exit(1 if failed else 0)
