"""What goes wrong, as exceptions whose text is the line that the program prints; where it is about
an option, that is the keyword that it is here."""

import difflib
import re


class LockstepError(Exception):
    """Any error of Lockstep. `str()` of it has a line for each mistake."""

    pointer = ""
    """JSON pointer of the place in a file, "/cluster/nodes"; empty: the whole file, or none."""
    found = ""
    """What stands there."""
    allowed = ""
    """The rule that it breaks."""
    suggestion = None
    """The name that was probably meant, or the change with which a job fits into memory; None where
    none is near."""


class ScenarioError(LockstepError, ValueError):
    """A mistake in a scenario, or in another file: where, what was found, what is allowed."""

    def __init__(self, line, file, pointer, found, allowed, suggestion):
        super().__init__(line)
        self.file = file
        """How the file was named; "scenario" where a dictionary was given."""
        self.pointer = pointer
        self.found = found
        self.allowed = allowed
        self.suggestion = suggestion

    def __reduce__(self):
        parts = (self.file, self.pointer, self.found, self.allowed, self.suggestion)
        return type(self), (str(self), *parts)


class UsageError(LockstepError, ValueError):
    """An option that there is not, that does not fit the others, or with a value it cannot have."""

    def __init__(self, line, found="", allowed="", suggestion=None):
        super().__init__(line)
        self.found = found
        self.allowed = allowed
        self.suggestion = suggestion

    def __reduce__(self):
        return type(self), (str(self), self.found, self.allowed, self.suggestion)


def not_allowed(where, found, allowed, suggestion=None):
    """The exception for an argument of Python: "threads: found 0; allowed: ..."."""
    line = f"{where}: found {found}; allowed: {allowed}"
    if suggestion:
        line += f". Did you mean {suggestion}?"
    return UsageError(line, str(found), allowed, suggestion)


class InternalError(LockstepError):
    """An error of Lockstep itself, which should be reported."""


class LockstepWarning(UserWarning):
    """What the program says beside an answer, such as a claim of the scenario that it misses."""


# What is not a name but a change, where a job does not fit into memory.
_NEAREST_FIT = re.compile(r"the nearest change that fits: (.*?)(?: \(--allow-oom|$)")
_UNKNOWN_KEY = re.compile(r'the unknown key "([^"]*)"')


def error_of(failure, keywords):
    """The exception for a failure as the extension module describes it. `keywords`: those of the
    command's options by their names, which the caller wrote instead of these."""
    parts = failure["found"], failure["allowed"], failure["suggestion"] or None
    if failure["internal"]:
        return InternalError(failure["line"])
    line = failure["line"]
    if not failure["in_file"]:
        line, *parts = (part and in_keywords(part, keywords) for part in (line, *parts))
        return UsageError(line, *parts)
    fit = _NEAREST_FIT.search(failure["allowed"])
    unknown = _UNKNOWN_KEY.match(failure["found"])
    if fit and not failure["suggestion"]:
        parts = *parts[:2], fit[1]
    elif unknown and not failure["suggestion"]:
        # What is no option is taken for a part of the scenario.
        near = difflib.get_close_matches(unknown[1], keywords.values(), n=1)
        if near:
            line, parts = f"{line}. Did you mean the keyword {near[0]}?", (*parts[:2], near[0])
    # The rule alone: what was found is quoted from the caller's file.
    rule = in_keywords(parts[1], keywords)
    line = line.replace(parts[1], rule) if parts[1] else line
    return ScenarioError(line, failure["file"], failure["pointer"], parts[0], rule, parts[2])


def in_keywords(text, keywords):
    """The text with keywords in place of options: "objective" for "--objective"."""
    return re.sub(r"--([a-z][a-z-]*)", lambda found: keywords.get(found[1], found[0]), text)
