"""Keywords of Python as words of the command line, by the options that the commands declare."""

import collections.abc
import difflib
import json
import keyword
import os
import re
import shutil
import tempfile
import weakref

from lockstep._errors import not_allowed
from lockstep.native import _lockstep

COMMANDS = _lockstep.commands()

# Where a scenario has what a question about a model on a machine says in a word.
_PATHS_OF_QUESTIONS = {
    "node": "cluster.node",
    "nodes": "cluster.nodes",
    "gpus": "cluster.nodes",
    "fabric": "cluster.fabric",
    "sequences": "batch.sequences",
    "tokens": "batch.tokens",
}

# Not for Python: how to print, where to, and what Python has itself.
_NOT_OFFERED = {"format", "quiet", "assert", "accuracy"}


def offered_options(command, has_input=True):
    """The options of a command that are keywords of its function, by keyword. Beside a scenario the
    questions about a model on a machine ("model", "nodes") are none: there they are changes."""
    return {
        _keyword_of(option): option
        for option in COMMANDS[command]["options"]
        if option["name"] not in _NOT_OFFERED
        and option["path"] != "prints"
        and not (has_input and option["asks"])
    }


def keywords_of(command):
    """The keywords by the names of their options."""
    return {option["name"]: key for key, option in offered_options(command, False).items()}


def _keyword_of(option):
    name = option["name"].replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name  # "from_"


def words_of(command, keywords, has_input):
    """The words that say what the keywords do."""
    options = offered_options(command, has_input)
    takes_changes = "set" in options
    words, changes = [], []
    for key, value in keywords.items():
        if key == "set":
            changes += _changes_of_set(value)
        elif key == "stack" and takes_changes and isinstance(value, collections.abc.Mapping):
            if "learnt" in value and key in options:  # a preset, which scenarios name
                words.append(_held_file(key, "--stack", value))
                continue
            changes.append(change_of(key, value))  # all of it: the scenario's may be a name alone
        elif key in options and not (takes_changes and _is_part(options[key], value)):
            words += _option_words(key, options[key], value)
        elif takes_changes:
            if command == "run" and has_input and key in _PATHS_OF_QUESTIONS:
                near = _PATHS_OF_QUESTIONS[key].replace(".", "__")
                rule = f"the path of a change, such as {near}={value!r}"
                raise not_allowed("lockstep.run()", f"{key}= beside a scenario", rule, near)
            changes += _changes_below(key.split("__"), value)
        else:
            near = difflib.get_close_matches(key, options, n=1)
            raise not_allowed(
                f"lockstep.{command}()", f"the keyword {key}", ", ".join(options), *near
            )
    return words + [f"--set={change}" for change in changes]


def _is_part(option, value):
    """Whether it is a part of the scenario, and no value of the option."""
    is_word = option["argument"] and "PATH=" not in option["argument"]
    return bool(is_word) and isinstance(value, collections.abc.Mapping)


def _changes_of_set(value):
    """`set` as a dictionary, or as the texts that --set takes."""
    if value is None:
        return []
    if isinstance(value, collections.abc.Mapping):
        return [change_of(path, each) for path, each in value.items()]
    texts = [value] if isinstance(value, str) else value
    if isinstance(texts, (list, tuple)) and all(isinstance(each, str) for each in texts):
        return list(texts)
    rule = 'a dictionary of values by path, a text "path=value", or a list of such texts'
    raise not_allowed("set", repr(value), rule)


def change_of(path, value):
    """A change as --set takes it."""
    return f"{path}={json_text(value, path)}"


def json_text(value, where):
    """The value as JSON. Paths are strings, and numbers of numpy are numbers. Raises UsageError with
    the place of what JSON cannot say."""
    try:
        return json.dumps(value, default=_plain)
    except (TypeError, ValueError, RecursionError):
        place, found = _unsayable(value, where)
        rule = "what JSON can say: a text, a number, True, False, None, a list or a dictionary"
        if len(place) > 80:  # a dictionary inside itself
            place = place[:80] + " ..."
        raise not_allowed(place, _short(found), rule) from None


def _short(value):
    try:
        shown = repr(value)
    except RecursionError:
        return f"a {type(value).__name__} that is too deep"
    return shown if len(shown) <= 80 else shown[:80] + " ..."


def _unsayable(value, place):
    """The first part that JSON has no word for, and where it is."""
    parts = ()
    if isinstance(value, collections.abc.Mapping):
        for key in value:
            if not isinstance(key, (str, int, float, bool, type(None))):
                return place, key
        parts = value.items()
    elif isinstance(value, (list, tuple)):
        parts = enumerate(value)
    for key, part in parts:
        try:
            json.dumps(part, default=_plain)
        except (TypeError, ValueError):
            return _unsayable(part, f"{place}.{key}")
        except RecursionError:
            break
    return place, value


def _plain(value):
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):  # numpy's
        return value.tolist()
    if isinstance(value, collections.abc.Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is nothing that JSON can say: {value!r}")


def _changes_below(keys, value):
    """A dictionary changes what it names, and leaves what stands beside it."""
    if isinstance(value, dict) and value:
        return [c for key, each in value.items() for c in _changes_below([*keys, key], each)]
    return [change_of(_path_of(keys), value)]


def _path_of(keys):
    if all(re.fullmatch(r"[^./~=]+", key) for key in keys):
        return ".".join(keys)
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)


class _HeldFile(str):
    """A word that names a file of its own, which goes with it."""


def _option_words(key, option, value):
    name = "--" + option["name"]
    if value is None or value is False:
        return []
    if not option["argument"]:
        if value is True:
            return [name]
        raise not_allowed(key, _short(value), "True, False or None")
    if isinstance(value, collections.abc.Mapping):
        if option["argument"].startswith("PATH="):  # "PATH=V1,V2,..."
            value = [f"{path}={_listed(values, key)}" for path, values in value.items()]
        elif option["path"] == "reads":
            return [_held_file(key, name, value)]
        else:
            raise not_allowed(key, _short(value), option["argument"])
    if option["repeatable"] and isinstance(value, (list, tuple)):
        return [f"{name}={_word(each, key)}" for each in value]
    return [f"{name}={_listed(value, key)}"]


def _held_file(key, name, value):
    folder = tempfile.mkdtemp()
    word = _HeldFile(f"{name}={os.path.join(folder, key)}.json")
    weakref.finalize(word, shutil.rmtree, folder, ignore_errors=True)
    with open(word.split("=", 1)[1], "w", encoding="utf-8") as file:
        file.write(json_text(value, key))
    return word


def _listed(value, key):
    if isinstance(value, (list, tuple, range)) or hasattr(value, "tolist"):
        return ",".join(_word(each, key) for each in value)
    return _word(value, key)


def _word(value, key):
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value if isinstance(value, str) else json_text(value, key)
