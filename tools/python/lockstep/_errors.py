"""What goes wrong, as exceptions whose text is the line that the program prints."""


class LockstepError(Exception):
    """Any error of Lockstep. `str()` of it has a line for each mistake."""

    pointer = ""
    """JSON pointer of the place in a file, "/cluster/nodes"; empty: the whole file, or none."""
    found = ""
    """What stands there."""
    allowed = ""
    """The rule that it breaks."""
    suggestion = None
    """The name that was probably meant; None where none is near."""


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


def not_allowed(where, found, allowed):
    """The exception for an argument of Python: "threads: found 0; allowed: ..."."""
    return UsageError(f"{where}: found {found}; allowed: {allowed}", str(found), allowed)


class InternalError(LockstepError):
    """An error of Lockstep itself, which should be reported."""


class LockstepWarning(UserWarning):
    """What the program says beside an answer, such as a claim of the scenario that it misses."""


def error_of(failure):
    """The exception for a failure as the extension module describes it."""
    parts = failure["found"], failure["allowed"], failure["suggestion"] or None
    if failure["in_file"]:
        return ScenarioError(failure["line"], failure["file"], failure["pointer"], *parts)
    if failure["internal"]:
        return InternalError(failure["line"])
    return UsageError(failure["line"], *parts)
