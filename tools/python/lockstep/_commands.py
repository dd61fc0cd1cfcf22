"""The commands as functions: the same code answers, in this process and without Python's lock."""

import collections.abc
import inspect
import os
import re
import tempfile
import warnings

from lockstep._errors import LockstepWarning, error_of, not_allowed
from lockstep._words import COMMANDS, json_text, keywords_of, offered_options, words_of
from lockstep.answers import COMMANDS as ANSWERS, result_of
from lockstep.native import _lockstep

_INTERRUPTED = 130  # the exit status of the program


def input_of(value, name="scenario"):
    """What the extension module takes for a path, a shipped name, or an object to be read."""
    if isinstance(value, (str, os.PathLike)):
        return bytes_of(os.fspath(value), name)
    if not isinstance(value, (collections.abc.Mapping, list, tuple)):
        rule = "a path, the name of one that ships, or a dictionary"
        raise not_allowed(name, repr(value), "a path, or a list" if name == "steps" else rule)
    return name, json_text(value, name)


def bytes_of(text, name):
    """The text as the library has it: names of files may be bytes that are no text."""
    if isinstance(text, bytes):
        return text
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise not_allowed(name, repr(text), "a text that UTF-8 can say") from None


def call(command, words, given):
    """What the command prints. Raises what it fails with."""
    called = _lockstep.call(command, [bytes_of(word, command) for word in words], given)
    if called["status"] == _INTERRUPTED:
        raise KeyboardInterrupt
    if called["failure"]:
        raise error_of(called["failure"], keywords_of(command))
    for line in called["err"].splitlines():
        warnings.warn(line, LockstepWarning, stacklevel=5)
    return called


class Question:
    """What was asked: enough to ask it again."""

    def __init__(self, command, words, given):
        self.command, self.words, self.given = command, words, given

    def answer(self):
        called = call(self.command, [*self.words, "--format=json"], self.given)
        if called["file"]:
            # As it was read: a file may have changed by the time of a page.
            self.given = bytes_of(called["file"], "scenario"), called["text"]
        return result_of(called["out"], self)

    def page(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.html")
            words = [*self.words, "--format=json", f"--report={path}"]
            with warnings.catch_warnings():  # the answer has said them
                warnings.simplefilter("ignore", LockstepWarning)
                call(self.command, words, self.given)
            with open(path, encoding="utf-8") as file:
                return file.read()

    def at_point(self, changes):
        """The same question at one of the points of its `vary`."""
        words = [word for word in self.words if not word.startswith("--vary=")]
        return Question(self.command, [*words, *(f"--set={each}" for each in changes)], self.given)

    def sweep(self, axes, threads, scenario):
        from lockstep._sweeps import sweep_of

        if self.given is None:  # a question about a model on a machine: of the scenario it made
            return sweep_of([], input_of(scenario), axes, threads)
        return sweep_of(self.words, self.given, axes, threads)


def ask(command, given, keywords, first_words=()):
    """The answer of a command to one text, or, without one, to its words alone."""
    words = [*first_words, *words_of(command, keywords, given is not None)]
    return Question(command, words, given).answer()


def _given(command, text, keywords, needed, name="scenario"):
    """The text for a command, None where keywords ask without one; `needed` names those."""
    if text is not None:
        return input_of(text, name)
    if not any(key in keywords for key in needed):
        several = ", ".join(f"{each}=..." for each in needed)
        rule = f"a path, the name of one that ships, a dictionary, or {several}"
        raise not_allowed(f"lockstep.{command}()", f"no {name}", rule)
    return None


def run(scenario=None, /, **keywords):
    return ask("run", _given("run", scenario, keywords, ["model", "node"]), keywords)


def comm(scenario=None, /, **keywords):
    return ask("comm", _given("comm", scenario, keywords, ["op", "node"]), keywords)


def tune(scenario=None, /, **keywords):
    return ask("tune", _given("tune", scenario, keywords, ["model", "node"]), keywords)


def plan(plan=None, /, **keywords):
    needed = ["model", "training", "node"]
    return ask("plan", _given("plan", plan, keywords, needed, "plan"), keywords)


def learn(steps, /, **keywords):
    return ask("learn", input_of(steps, "steps"), keywords)


def replay(*traces, **keywords):
    if not traces:
        raise not_allowed("lockstep.replay()", "no trace", "paths of files or folders")
    for trace in traces:
        if not isinstance(trace, (str, os.PathLike)):
            raise not_allowed("lockstep.replay()", repr(trace), "paths of files or folders")
    return ask("replay", None, keywords, [os.fspath(trace) for trace in traces])


def validate(**keywords):
    return ask("validate", None, keywords)


# What each takes before its keywords, in words.
_TAKES = {
    run: "`scenario`: the path of a file, the name of one that ships, or a dictionary. Without it, "
    "`model` and `node` (or `cluster`) ask about a model on a machine.",
    comm: "`scenario`: the path of a file, the name of one that ships, or a dictionary. Without it, "
    "`op` and `node` (or `cluster`) ask about collectives on a machine.",
    tune: "`scenario`: the path of a file, the name of one that ships, or a dictionary. Without it, "
    "`model` and `node` (or `cluster`) ask for the layouts of a model on a machine.",
    plan: "`plan`: the path of a file, the name of one that ships, or a dictionary. Without it, "
    "`model`, `training` and `node` ask which servers train a model.",
    learn: "`steps`: the path of a file, or a list of dictionaries.",
    replay: "`traces`: paths of files or folders.",
    validate: "Without keywords: the project's own rows.",
}
_CHANGES = (
    "Every other keyword is a change of the scenario: `cluster__nodes=384` and\n"
    '`cluster={"nodes": 384}` are `--set cluster.nodes=384`; `set={"cluster.nodes": 384}` takes\n'
    'any path, and a value as it is, and `set="cluster.nodes=384"` the text of `--set`, or a list\n'
    "of such texts. A dictionary for `stack` is all of the scenario's."
)
_CHANGES_OF = {
    run: _CHANGES + " Beside a scenario `model` is a\n"
    "change too, and what `nodes` says without one is `cluster__nodes`.",
    plan: "Every other keyword is a change of the plan: `training__tokens=\"2 T tokens\"` and\n"
    '`training={"tokens": "2 T tokens"}` are `--set training.tokens="2 T tokens"`; `set` takes a\n'
    "dictionary of any paths, the text of `--set`, or a list of such texts.",
}

_EXAMPLES = {
    learn: """>>> job = {"model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 2},
...        "parallelism": {"sharding": "zero3"}, "batch": {"sequences": 16, "tokens": 8192},
...        "recompute": "full", "stack": "hf_trainer"}
>>> answer = lockstep.learn([{"scenario": job, "step": "1.9 s"}])
>>> answer.kinds[0].kernels_take, answer.kinds[0].measured
(1.11092265554, ['/0: 1.90 s measured, 1.53 s predicted'])
""",
    validate: """>>> answer = lockstep.validate(source="bloom")
>>> answer.summary.overall.n, answer.summary.overall.median_abs_error
(83, 0.0397748428579)
>>> answer.rows[0].id, answer.rows[0].predicted_step_s, answer.rows[0].measured_step_s
('bloom-tune-205B-n45-d5t8p9-mb1-b2045-h96', 204.291308429, 199.14)
""",
}


def _answers_of(name):
    """Which classes a command's answers have, in words."""
    if name not in ANSWERS:
        return 'Answers with the class of lockstep.answers that fits the scenario, as its "kind" says.'
    words = [f"lockstep.answers.{of} ({about[0].lower()}{about[1:-1]})"
             for _, of, about, _ in ANSWERS[name].values()]
    return "Answers with " + ", or ".join(words) + "."


def _in_python(text, options):
    """What the program's help says, with its options as the keywords that they are here."""
    keywords = {option["name"]: key for key, option in options.items()}

    def as_keyword(found):
        key = keywords.get(found[1])
        return f"`{key}`" if key else found[0]

    # Commands in backticks are of the command line, and stay as they are typed.
    parts = re.split("(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"--([a-z][a-z-]*)\b(?!-)", as_keyword, part)
        for part in parts
    )


def _document(function):
    """Signature and docstring, from what the command declares."""
    name = function.__name__
    options = offered_options(name, has_input=False)
    own = [p for p in inspect.signature(function).parameters.values() if p.kind != p.VAR_KEYWORD]
    named = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None)
        for key in options
    ]
    rest = [inspect.Parameter("changes", inspect.Parameter.VAR_KEYWORD)] if "set" in options else []
    function.__signature__ = inspect.Signature([*own, *named, *rest])
    about = _in_python(COMMANDS[name]["about"], options)
    lines = [COMMANDS[name]["summary"], "", about, "", _TAKES[function], "", _answers_of(name)]
    if rest:
        lines += ["", _CHANGES_OF.get(function, _CHANGES)]
    lines += ["", "Keywords:"]
    lines += [f"  {key}: {_in_python(option['text'], options)}" for key, option in options.items()]
    if function in _EXAMPLES:
        lines += ["", _EXAMPLES[function]]
    function.__doc__ = "\n".join(lines)
    function.__module__ = "lockstep"


for _function in _TAKES:
    _document(_function)
