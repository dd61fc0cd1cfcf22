"""Lockstep predicts what a GPU cluster does with a training job: step time, MFU, memory, and where
the rest of the time goes.

    import lockstep
    answer = lockstep.run("llama3-405b-16k", cluster__nodes=1024, parallelism__data=64)
    answer.step_s, answer.mfu
    answer.waterfall.table()
    answer.sweep({"cluster.fabric.leaf_oversubscription": [1, 2, 4]})

Everything is simulated in this process, by the library that the command line calls; names and
numbers are the same. Times are in seconds, and other units stand at the end of each name.
"""

from lockstep._commands import comm, learn, plan, replay, run, tune, validate
from lockstep._errors import (
    InternalError,
    LockstepError,
    LockstepWarning,
    ScenarioError,
    UsageError,
)
from lockstep._sweeps import sweep
from lockstep.answers import Record, Result, Rows
from lockstep.native import _lockstep

__version__ = _lockstep.version

__all__ = [
    "InternalError",
    "LockstepError",
    "LockstepWarning",
    "Record",
    "Result",
    "Rows",
    "ScenarioError",
    "UsageError",
    "add_queue_order",
    "comm",
    "learn",
    "plan",
    "presets",
    "replay",
    "run",
    "scenarios",
    "sweep",
    "tune",
    "validate",
]


def add_queue_order(name, key, summary="", knows_duration=False):
    """Adds an order that scenarios name in queue.order: the job with the least key comes first.

    `key` gets a dictionary for each job: number, submit_s, limit_s, gpus, priority, user, account,
    model, and runs_s, which is 0 unless the order `knows_duration`. It is asked once for each job of
    a simulation, from any thread, and answers a finite number. Add it before any thread simulates;
    it stays until Python ends.
    """
    try:
        _lockstep.add_queue_order(name, summary, knows_duration, key)
    except RuntimeError as error:
        raise UsageError(str(error)) from None


def scenarios():
    """The scenarios that ship, a dictionary each: name, command, file, sentence."""
    return _lockstep.scenarios()


def presets(kind):
    """The names of the presets of a kind: "gpus", "nodes", "models", "stacks", ..."""
    from lockstep._commands import call
    import json

    listed = json.loads(call("list", [kind, "--format=json"], None)["out"])
    return [preset["name"] for preset in listed]
