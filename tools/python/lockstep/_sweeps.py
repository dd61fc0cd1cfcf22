"""Sweeps: the numbers of many answers in one table."""

import collections.abc
import concurrent.futures
import contextlib
import itertools
import json
import os
import sqlite3
import tempfile

from lockstep._commands import bytes_of, call, input_of
from lockstep._errors import error_of, not_allowed
from lockstep._frames import frame
from lockstep._words import change_of, keywords_of, words_of
from lockstep.native import _lockstep


def sweep(scenario, axes=None, /, *, threads=None, **keywords):
    """The numbers of a scenario with every combination of values: a row for each, with a column for
    each axis, for each number of the answer's first level, and `error`, which is None where there
    is an answer. A pandas.DataFrame where pandas is installed, else a list of dictionaries.

    `axes`: the values by path, {"cluster.nodes": [512, 1024]}. `threads`: how many points at once,
    by default one per core; the numbers are the same for any. Other keywords are those of run().
    A point without an answer says why; where no point has one, that is raised.

    Without `axes`, `scenario` is the path of a sweep file (scenarios/sweeps/README.md), or the name
    of one that ships. Keywords are then those of `lockstep sweep`; `output="results.db"` keeps the
    database, which a later call goes on with.
    """
    if axes is None:
        return _sweep_file(scenario, threads, keywords)
    return sweep_of(words_of("run", keywords, True), input_of(scenario), axes, threads)


def sweep_of(words, given, axes, threads):
    """The numbers with every combination of the axes' values, after the changes of the words."""
    numbers, failure = _lockstep.numbers_of([bytes_of(word, "sweep") for word in words], given)
    if failure:
        raise error_of(failure, keywords_of("run"))
    axes = _checked(axes, threads)
    points = [dict(zip(axes, values)) for values in itertools.product(*axes.values())]
    changes = [[change_of(path, value) for path, value in point.items()] for point in points]
    with concurrent.futures.ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        try:
            answers = list(pool.map(numbers.with_changes, changes))
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    failures = [failure for _, failure in answers if failure]
    if failures and len(failures) == len(answers):
        raise error_of(failures[0], keywords_of("run"))
    rows = [
        _plain_point(point) | found | {"error": failure and failure["line"]}
        for point, (found, failure) in zip(points, answers)
    ]
    return frame(rows, _columns(axes, rows))


def _checked(axes, threads):
    """The axes with lists of their values."""
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise not_allowed("sweep: threads", repr(threads), "a whole number from 1")
    if not isinstance(axes, collections.abc.Mapping):
        raise not_allowed("sweep", repr(axes), "a dictionary of values by path")
    lists = {}
    for path, values in axes.items():
        # A word would be taken letter by letter.
        if isinstance(values, (str, bytes, dict)) or not hasattr(values, "__iter__"):
            raise not_allowed(f"sweep: {path}", repr(values), "a list of values")
        lists[path] = list(values)
        if not lists[path]:
            raise not_allowed(f"sweep: {path}", "no values", "one or more")
    return lists


def _plain_point(point):
    """What is no number or word is in the table as JSON."""
    return {
        path: json.dumps(value) if isinstance(value, (dict, list)) else value
        for path, value in point.items()
    }


def _columns(axes, rows):
    """Axes, then numbers in the order of their declaration, then errors."""
    found = {name for row in rows for name in row}
    declared = [f["name"] for fields in _lockstep.fields().values() for f in fields]
    numbers = [name for name in dict.fromkeys(declared) if name in found and name not in axes]
    rest = sorted(found - {*axes, *numbers, "error"})
    return [*axes, *numbers, *rest, "error"]


def _sweep_file(path, threads, keywords):
    if not isinstance(path, (str, os.PathLike)):
        raise not_allowed("sweep", "no axes", "a dictionary of them, or the path of a sweep file")
    changes = [key for key in keywords if "__" in key]
    if changes:
        path = changes[0].replace("__", ".")
        raise not_allowed(
            "sweep", f"the keyword {changes[0]} and no axes", f'axes: sweep(scenario, {{"{path}": [...]}})'
        )
    keywords = {"jobs": threads} | keywords
    with contextlib.ExitStack() as stack:
        if not keywords.get("output"):
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            keywords["output"] = os.path.join(folder, "results.db")
        words = [os.fspath(path), *words_of("sweep", keywords, False), "--format=json"]
        call("sweep", words, None)
        return _points_of(os.fspath(keywords["output"]))


def _points_of(database):
    with contextlib.closing(sqlite3.connect(database)) as connection:
        points = connection.execute("SELECT * FROM points ORDER BY point")
        names = [column[0] for column in points.description]
        rows = [dict(zip(names, values)) for values in points]
    return frame(rows, [name for name in names if name not in ("point", "status", "hash", "json")])
