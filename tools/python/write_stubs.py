"""Writes the stubs of the package for type checkers and editors, from what the library declares.

    write_stubs.py FOLDER STUB    FOLDER holds the package; STUB: its __init__.pyi. answers.pyi is
                                  written beside it.
"""

import inspect
import keyword
import os
import sys
import textwrap

HEAD = '''# Written by tools/python/write_stubs.py from the declarations of the library.
import os
from collections.abc import Mapping, Sequence
from typing import Any

'''

# What a keyword may be, by what its option takes.
SCENARIO = "str | os.PathLike[str] | Mapping[str, Any]"
FIRST = {
    "run": f"scenario: {SCENARIO} | None = ...",
    "comm": f"scenario: {SCENARIO} | None = ...",
    "tune": f"scenario: {SCENARIO} | None = ...",
    "plan": f"plan: {SCENARIO} | None = ...",
    "learn": "steps: str | os.PathLike[str] | Sequence[Mapping[str, Any]]",
    "replay": "*traces: str | os.PathLike[str]",
    "validate": "",
}
# Options of which a dictionary is a part of the scenario.
PARTS = ("cluster", "model", "stack", "training", "price")
# The class of an answer depends on what is asked, but for this command's.
RETURNS = {"learn": "LearnAnswer"}

ERRORS = '''
class LockstepError(Exception):
    pointer: str
    found: str
    allowed: str
    suggestion: str | None

class ScenarioError(LockstepError, ValueError):
    file: str

class UsageError(LockstepError, ValueError): ...
class InternalError(LockstepError): ...
class LockstepWarning(UserWarning): ...
'''

RECORDS = '''
class Record:
    def __getitem__(self, name: str) -> Any: ...
    def __contains__(self, name: object) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def to_dict(self) -> dict[str, Any]: ...

class OpenRecord(Record):
    def __getattr__(self, name: str) -> Any: ...

class Rows(list[_Row]):
    def table(self) -> Any: ...

class Result(Record):
    @property
    def lockstep_version(self) -> str:
        """Version of Lockstep that answered."""
    @property
    def json(self) -> str: ...
    def table(self) -> Any: ...
    def page(self) -> str: ...

class OpenResult(Result):
    def __getattr__(self, name: str) -> Any: ...

class Point(OpenRecord): ...

class VariedResult(OpenResult):
    @property
    def points(self) -> Rows[Point]: ...

class Answer(Result):
    def sweep(
        self, axes: Mapping[str, Sequence[Any]], *, threads: int | None = ...
    ) -> Any: ...
'''

PLAIN_TYPES = {
    "number": "float",
    "integer": "int",
    "flag": "bool",
    "text": "str",
    "texts": "list[str]",
    "numbers": "list[float]",
    "named_numbers": "dict[str, float]",
    "any": "Any",
}


def docstring(text, indent):
    body = textwrap.fill(text, 96 - indent)
    return textwrap.indent(f'"""{body}"""', " " * indent) + "\n"


def type_of(field, owner, answers):
    if field["members"]:
        name = answers.class_name(owner, field)
        if field["kind"] == "objects":
            return f"Rows[{name}]"
        if field["kind"] == "named_objects":
            name = f"dict[str, {name}]"
    else:
        name = PLAIN_TYPES.get(field["kind"], "Any")
    return name if field["always"] and not field["nullable"] else f"{name} | None"


def class_stub(name, fields, base, answers, about):
    parts = []
    for field in fields:
        if field["members"]:
            own = answers.class_name(name, field)
            parts.append(
                class_stub(own, field["members"], "Record", answers, answers.described(field))
            )
    lines = f"class {name}({base}):\n" + docstring(about, 4)
    for field in fields:
        if keyword.iskeyword(field["name"]) or not field["name"].isidentifier():
            continue
        lines += f"    @property\n    def {field['name']}(self) -> "
        lines += type_of(field, name, answers) + ":\n"
        lines += docstring(answers.described(field), 8)
    return "\n".join([*parts, lines])


def answers_stub(answers, native):
    kinds = native.fields()
    out = HEAD + "from collections.abc import Iterator\nfrom typing import TypeVar\n\n"
    out += '_Row = TypeVar("_Row", bound=Record)\n' + RECORDS
    for kind, made in answers.answer_classes.items():
        about = inspect.getdoc(made)
        out += "\n" + class_stub(made.__name__, kinds[kind], "Answer", answers, about)
    kinds = native.command_fields()
    for kind, made in answers.command_classes.items():
        about = inspect.getdoc(made)
        out += "\n" + class_stub(made.__name__, kinds[kind], "Result", answers, about)
    return out


def keyword_type(name, option):
    if name == "set":
        return "Mapping[str, Any] | str | Sequence[str] | None"
    if not option["argument"]:
        return "bool | None"
    one = "str | os.PathLike[str]" if option["path"] != "none" else "str | float"
    if option["argument"].startswith("PATH="):
        one = "str | Mapping[str, Sequence[Any]]"
    if name in PARTS or (option["path"] == "reads" and not option["repeatable"]):
        one += " | Mapping[str, Any]"
    many = option["repeatable"] or "," in option["argument"]
    return f"{one} | Sequence[{one}] | None" if many else f"{one} | None"


def function_stub(name, words):
    options = words.offered_options(name, has_input=False)
    parameters = [FIRST[name]] if FIRST[name] else []
    if FIRST[name] and not FIRST[name].startswith("*"):
        parameters.append("/")
    if not FIRST[name].startswith("*"):
        parameters.append("*")
    for key, option in options.items():
        parameters.append(f"{key}: {keyword_type(key, option)} = ...")
    if "set" in options:
        parameters.append("**changes: Any")
    lines = "".join(f"    {each},\n" for each in parameters)
    about = words.COMMANDS[name]["summary"]
    returned = RETURNS.get(name, "Any")
    return f"def {name}(\n{lines}) -> {returned}:\n" + docstring(about, 4)


def package_stub(words):
    out = HEAD + "from collections.abc import Callable\nfrom typing import Literal\n\n"
    out += "from lockstep.answers import LearnAnswer\n"
    out += "from lockstep.answers import OpenRecord as OpenRecord, OpenResult as OpenResult\n"
    out += "from lockstep.answers import Record as Record, Result as Result, Rows as Rows\n"
    out += "\n__version__: str\n" + ERRORS
    for name in FIRST:
        out += "\n" + function_stub(name, words)
    out += f'''
def sweep(
    scenario: {SCENARIO},
    axes: Mapping[str, Sequence[Any]] | None = ...,
    /,
    *,
    threads: int | None = ...,
    **keywords: Any,
) -> Any:
{docstring("The numbers of a scenario with every combination of values, as a table.", 4)}
def scenarios() -> list[dict[str, str]]: ...
def presets(kind: str) -> list[str]: ...
def remove(name: str) -> None:
{docstring("Takes out what Python added under this name.", 4)}def add_queue_order(
    name: str,
    key: Callable[[dict[str, Any]], float],
    summary: str = ...,
    knows_duration: bool = ...,
) -> None:
{docstring("Adds an order of a queue: the job with the least key comes first.", 4)}
def add_queue_admission(
    name: str,
    starts: Callable[[dict[str, Any]], Sequence[int]],
    summary: str = ...,
) -> None:
{docstring("Adds an admission of a queue: whom the scheduler starts.", 4)}
def add_victim_rule(
    name: str,
    key: Callable[[dict[str, Any], dict[str, Any]], float],
    summary: str = ...,
) -> None:
{docstring("Adds a rule of evictions: the running job with the greatest key goes first.", 4)}
def add_checkpoint_rule(
    name: str,
    next_checkpoint: Callable[[dict[str, float]], float],
    summary: str = ...,
) -> None:
{docstring("Adds a rule of checkpoints: when the next one is due.", 4)}
def add_schedule(
    name: str,
    order: Callable[[dict[str, int]], Sequence[str]],
    *,
    summary: str = ...,
    source: str = ...,
    layout: Literal["loop", "v", "two_way"] = ...,
    virtual_stages: tuple[int, int] = ...,
    micro_batches: Callable[[int], tuple[int, int]] | None = ...,
    splits_backward: bool = ...,
    blocking_sends: bool = ...,
    even_ranks: bool = ...,
) -> None:
{docstring("Adds a pipeline schedule: an order of passes for each rank.", 4)}
def add_collective(
    name: str,
    law: Callable[[dict[str, Any]], dict[str, Any] | Sequence[dict[str, Any]] | str | None],
    shape: Callable[[dict[str, Any]], dict[str, Any]] | None = ...,
    *,
    summary: str = ...,
    source: str = ...,
) -> None:
{docstring("Adds a way to run a collective: what it costs, and which links it loads.", 4)}
def add_traffic_process(
    name: str,
    next_round: Callable[[dict[str, float]], float | tuple[float, Sequence[float]] | None],
    summary: str = ...,
) -> None:
{docstring("Adds a process beside training steps: when nodes send, and how much.", 4)}'''
    return out


def main(folder, stub):
    sys.path.insert(0, folder)
    from lockstep import _words, answers
    from lockstep.native import _lockstep

    with open(os.path.join(os.path.dirname(stub), "answers.pyi"), "w", encoding="utf-8") as file:
        file.write(answers_stub(answers, _lockstep))
    with open(stub, "w", encoding="utf-8") as file:
        file.write(package_stub(_words))


if __name__ == "__main__":
    main(*sys.argv[1:])
