"""Keywords of Python as words of the command line, by the options that the commands declare."""

import json
import keyword
import os
import re

from lockstep.native import _lockstep

COMMANDS = _lockstep.commands()

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
            changes += [change_of(path, each) for path, each in dict(value or {}).items()]
        elif key in options:
            words += _option_words(options[key], value)
        elif takes_changes:
            changes += _changes_below(key.split("__"), value)
        else:  # the command refuses it, with the nearest name
            words.append("--" + key.replace("_", "-"))
    return words + [f"--set={change}" for change in changes]


def change_of(path, value):
    """A change as --set takes it."""
    return f"{path}={json_text(value)}"


def json_text(value):
    """The value as JSON. Paths are strings, and numbers of numpy are numbers."""
    return json.dumps(value, default=_plain)


def _plain(value):
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):  # numpy's
        return value.tolist()
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


def _option_words(option, value):
    name = "--" + option["name"]
    if value is None or value is False:
        return []
    if not option["argument"]:
        return [name] if value is True else [f"{name}={_word(value)}"]
    if isinstance(value, dict):  # "PATH=V1,V2,..."
        value = [f"{path}={_listed(values)}" for path, values in value.items()]
    if option["repeatable"] and isinstance(value, (list, tuple)):
        return [f"{name}={_word(each)}" for each in value]
    return [f"{name}={_listed(value)}"]


def _listed(value):
    if isinstance(value, (list, tuple, range)) or hasattr(value, "tolist"):
        return ",".join(_word(each) for each in value)
    return _word(value)


def _word(value):
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value if isinstance(value, str) else json_text(value)
