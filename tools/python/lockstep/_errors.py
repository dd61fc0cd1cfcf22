"""What goes wrong, as exceptions whose text is the line that the program prints."""


class LockstepError(Exception):
    """Any error of Lockstep. `str()` of it has a line for each mistake."""


class ScenarioError(LockstepError, ValueError):
    """A mistake in a scenario, or in another file: where, what was found, what is allowed."""

    def __init__(self, line, file, pointer, found, allowed, suggestion):
        super().__init__(line)
        self.file = file
        """How the file was named; "scenario" where a dictionary was given."""
        self.pointer = pointer
        """JSON pointer of the place, "/cluster/nodes"; empty: the whole file."""
        self.found = found
        """What stands there."""
        self.allowed = allowed
        """The rule that it breaks."""
        self.suggestion = suggestion
        """The name that was probably meant; None where none is near."""

    def __reduce__(self):
        parts = (self.file, self.pointer, self.found, self.allowed, self.suggestion)
        return type(self), (str(self), *parts)


class UsageError(LockstepError, ValueError):
    """An option that there is not, that does not fit the others, or with a value it cannot have."""


class InternalError(LockstepError):
    """An error of Lockstep itself, which should be reported."""


class LockstepWarning(UserWarning):
    """What the program says beside an answer, such as a claim of the scenario that it misses."""


def error_of(failure):
    """The exception for a failure as the extension module describes it."""
    if failure["in_file"]:
        return ScenarioError(
            failure["line"],
            failure["file"],
            failure["pointer"],
            failure["found"],
            failure["allowed"],
            failure["suggestion"] or None,
        )
    return (InternalError if failure["internal"] else UsageError)(failure["line"])
