"""Answers as objects: a class for every object that an answer can hold, made of the rows that
declare its members in the library. So a member has the same name here as in JSON, in CSV and on the
command line, and its unit in its docstring."""

import difflib
import html
import json
import keyword

from lockstep._frames import flat, frame
from lockstep.native import _lockstep


_ANY_NAME = "*"  # the declaration of members whose names nobody knows beforehand


class Record:
    """An object of an answer. Its members are attributes, and items by the same names. One that
    does not apply to this answer is None as an attribute, and missing among the items."""

    _classes = {}

    def __init__(self, members):
        self._members = members

    @property
    def _others(self):
        return self._classes.get(_ANY_NAME, OpenRecord)

    def __getattr__(self, name):
        if name.startswith("_") or name not in self._members:
            near = [] if name.startswith("_") else difflib.get_close_matches(name, dir(self), n=1)
            hint = f". Did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"{type(self).__name__} has no member {name!r}{hint}")
        return self[name]

    def __getitem__(self, name):
        return _as_object(self._members[name], self._classes.get(name, self._others))

    def __contains__(self, name):
        return name in self._members

    def __iter__(self):
        return iter(self._members)

    def __len__(self):
        return len(self._members)

    def __eq__(self, other):
        return isinstance(other, Record) and self._members == other._members

    __hash__ = None

    def __dir__(self):
        return sorted({*super().__dir__(), *self._members})

    def __repr__(self):
        shown = ", ".join(f"{name}={_short(value)}" for name, value in self._members.items())
        return f"{type(self).__name__}({shown})"

    def to_dict(self):
        """The members as JSON has them."""
        return self._members


class _Named:
    """Of a member that is a dictionary of objects: what each of them is."""

    def __init__(self, of):
        self.of = of


class OpenRecord(Record):
    """An object whose members the library does not declare: type checkers take any."""


class Rows(list):
    """A list of objects of an answer."""

    def table(self):
        """A row for each: a pandas.DataFrame where pandas is installed, else a list of
        dictionaries. Members of objects in them stand behind a dot: "buckets_s.launch"."""
        return frame(flat(row.to_dict()) for row in self)


# What the rows of a table are, in answers whose members are not declared.
_LISTS = ("best", "candidates", "rows", "points", "changes", "traffic", "kinds", "ranks", "parts")


class Result(Record):
    """What a command answered."""

    _fields = ()
    _rows = None  # the member whose elements are the rows of the table

    def __init__(self, text, question):
        super().__init__(json.loads(text))
        self._text = text
        self._question = question

    @property
    def lockstep_version(self):
        """Version of Lockstep that answered."""
        return self["lockstep_version"]

    @property
    def json(self):
        """The answer as `lockstep COMMAND --format json` prints it, to the last byte."""
        return self._text

    def table(self):
        """The numbers of the first level with unit and meaning; of a search, a plan, a comparison
        and rows that were validated, a row for each of those. A pandas.DataFrame where pandas is
        installed, else a list of dictionaries."""
        if self._rows:
            return Rows(self[self._rows]).table()
        if not self._fields:
            for name in _LISTS:
                if isinstance(self._members.get(name), list):
                    return Rows(Record(each) for each in self._members[name]).table()
        declared = {field["name"]: field for field in self._fields}
        rows = []
        for name, value in self._members.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                continue
            field = declared.get(name, {})
            better = field.get("better", "neither")
            rows.append(
                {
                    "member": name,
                    "value": value,
                    "unit": field.get("unit", ""),
                    "better": "" if better == "neither" else better,
                    "what it is": field.get("sentence", ""),
                }
            )
        return frame(rows, ["member", "value", "unit", "better", "what it is"])

    def page(self):
        """The self-contained HTML page that `--report` writes. Answers the question again; raises
        UsageError where the package was built without a chart library, and of commands without a
        page."""
        return self._question.page()

    def _repr_html_(self):
        from lockstep._errors import LockstepError

        try:
            page = self.page()
        except LockstepError:  # no chart library, or no page: a notebook shows repr() instead
            return None
        return (
            f'<iframe srcdoc="{html.escape(page)}" style="width: 100%; height: 720px; border: 0">'
            "</iframe>"
        )


class OpenResult(Result):
    """A result whose members the library does not declare: type checkers take any."""


class VariedResult(OpenResult):
    """Answers with each combination of the values of `vary`: a row of `points` for each, whose
    `answer` is what the command answers at that point alone, and None where `error` says why."""

    @property
    def points(self):
        """A row for each combination, with its values, status, error and answer."""
        return self["points"]

    def __getitem__(self, name):
        if name != "points":
            return super().__getitem__(name)
        paths = [axis["path"] for axis in self._members["axes"]]
        return Rows(Point(each, self._question, paths) for each in self._members["points"])


class Point(OpenRecord):
    """A combination of the values of `vary`, and the answer there."""

    def __init__(self, members, question, paths):
        super().__init__(members)
        self._question = question
        self._paths = paths

    def __getitem__(self, name):
        answer = self._members[name]
        if name != "answer" or not isinstance(answer, dict):
            return super().__getitem__(name)
        changes = [f"{path}={value}" for path, value in zip(self._paths, self._members["values"])]
        return result_of(json.dumps(answer, indent=2) + "\n", self._question.at_point(changes))


class Answer(Result):
    """The answer to a scenario."""

    def sweep(self, axes, *, threads=None):
        """The numbers of this scenario with each combination of values, as lockstep.sweep()."""
        return self._question.sweep(axes, threads, self._members["scenario"])


def _as_object(value, of):
    if of is dict:
        return value
    if isinstance(of, _Named):
        return {name: of.of(each) for name, each in value.items()}
    if isinstance(value, dict):
        return of(value)
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        return Rows(of(each) for each in value)
    return value


def _short(value):
    if isinstance(value, dict):
        return "{...}"
    return f"[{len(value)}]" if isinstance(value, list) else repr(value)


def described(field):
    """The sentence about a member, with its unit and which way is better."""
    notes = [field["unit"]] if field["unit"] else []
    if field["better"] != "neither":
        notes.append(f"{field['better']} is better")
    return field["sentence"] + (f" [{', '.join(notes)}]" if notes else "")


def _member(field):
    name = field["name"]
    is_list = field["kind"] == "objects"

    def get(record):
        value = record[name] if name in record else None
        return Rows(value or ()) if is_list else value

    return property(get, doc=described(field))


def class_name(parent, field):
    """StepAnswerPower, of the member `power` of a class StepAnswer."""
    if field["name"] == _ANY_NAME:
        return parent + "Other"
    return parent + "".join(word.capitalize() for word in field["name"].split("_"))


def is_plain(field):
    """Whether the member is a dictionary whose keys nobody declares."""
    return field["kind"] in ("any", "named_numbers")


def _declare(name, fields, base, about):
    """Makes a class of this module, with a property for each of the fields."""
    classes = {}
    members = {"__doc__": about, "__module__": __name__, "_classes": classes}
    for field in fields:
        if field["members"]:
            own = class_name(name, field)
            each = _declare(own, field["members"], Record, described(field))
            classes[field["name"]] = _Named(each) if field["kind"] == "named_objects" else each
        elif is_plain(field):
            classes[field["name"]] = dict
        if field["name"].isidentifier() and not keyword.iskeyword(field["name"]):
            members[field["name"]] = _member(field)
    globals()[name] = type(name, (base,), members)
    return globals()[name]


_ANSWERS = {
    "step": ("StepAnswer", "The answer to a scenario of one training step."),
    "run": ("RunAnswer", 'The answer to a scenario with "run": days to months of training.'),
    "jobs": ("JobsAnswer", 'The answer to a scenario with "jobs": several on one fabric.'),
    "rl": ("RlAnswer", 'The answer to a scenario with "rl": a step of reinforcement learning.'),
    "queue": ("QueueAnswer", 'The answer to a scenario with "queue": many jobs, a scheduler.'),
    "serving": ("ServingAnswer", 'The answer to a scenario with "serving": requests on replicas.'),
}


def _declare_answers():
    made = {}
    for kind, fields in _lockstep.fields().items():
        name, about = _ANSWERS[kind]
        made[kind] = _declare(name, fields, Answer, about)
        made[kind]._fields = tuple(fields)
    return made


answer_classes = _declare_answers()

# Of commands beside run: kinds of answers, each with a member that tells it from the others of the
# command, its class, what that is, and the member whose elements are the rows of its table.
COMMANDS = {
    "comm": {
        "collectives": ("rows", "CollectivesAnswer", "Collectives on a machine.", "rows"),
        "traffic": ("traffic", "TrafficAnswer", "Traffic on a fabric.", "traffic"),
    },
    "tune": {
        "tune_serving": ("objective", "ServingTuneAnswer", "The best ways to serve.", "best"),
        "tune": ("own", "TuneAnswer", "The fastest layouts of a training job.", "best"),
    },
    "plan": {
        "plan_serving": ("options", "ServingPlanAnswer", "Which machines serve a load.", "options"),
        "plan": ("candidates", "PlanAnswer", "Which machines train a model.", "candidates"),
    },
    "learn": {
        "learn": ("kinds", "LearnAnswer", "What measured steps say of a stack.", "kinds"),
    },
    "validate": {
        "validate_rows": ("rows", "RowsAnswer", "Training runs, as measured.", "rows"),
        "validate_points": ("points", "PointsAnswer", "Measured points of a file.", "points"),
        "validate_intervals": ("coverage", "IntervalsAnswer", "With `intervals`.", None),
        "validate_fit": ("parts", "FitAnswer", "With `fit`.", "parts"),
    },
    "replay": {
        "loggops": ("loggops", "LogGopsAnswer", "A GOAL schedule by the LogGOPS model.", None),
        "replay": ("step_s", "ReplayAnswer", "A recorded trace on a cluster.", None),
    },
}


def _declare_commands():
    made = {}
    declared = _lockstep.command_fields()
    for command, kinds in COMMANDS.items():
        for kind, (_, name, about, rows) in kinds.items():
            of = _declare(name, declared[kind], Result, f"The answer of {command}: {about}")
            of._fields = tuple(declared[kind])
            of._rows = rows
            made[kind] = of
    return made


command_classes = _declare_commands()


def result_of(text, question):
    """The result, of the class of what it is the answer to."""
    result = Result(text, question)
    result.__class__ = _class_of(result.to_dict(), question)
    return result


def _class_of(members, question):
    if not isinstance(members, dict):
        return OpenResult
    if "axes" in members and "points" in members:
        return VariedResult
    for kind, (tells, *_) in COMMANDS.get(question.command, {}).items():
        if tells in members:
            return command_classes[kind]
    return answer_classes.get(members.get("kind"), OpenResult)
