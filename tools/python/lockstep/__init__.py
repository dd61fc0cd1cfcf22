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
    not_allowed,
)
from lockstep._sweeps import sweep
from lockstep.answers import OpenRecord, OpenResult, Record, Result, Rows
from lockstep.native import _lockstep

__version__ = _lockstep.version

__all__ = [
    "InternalError",
    "LockstepError",
    "LockstepWarning",
    "OpenRecord",
    "OpenResult",
    "Record",
    "Result",
    "Rows",
    "ScenarioError",
    "UsageError",
    "add_checkpoint_rule",
    "add_collective",
    "add_queue_admission",
    "add_queue_order",
    "add_schedule",
    "add_traffic_process",
    "add_victim_rule",
    "comm",
    "learn",
    "plan",
    "presets",
    "remove",
    "replay",
    "run",
    "scenarios",
    "sweep",
    "tune",
    "validate",
]


def _added(add, *arguments):
    try:
        add(*arguments)
    except RuntimeError as error:
        raise UsageError(str(error)) from None


def remove(name):
    """Takes out what Python added under this name, of any kind: a collective is no longer weighed,
    and a scenario that names anything else of it is refused. Lists keep the name, which Python may
    add again. Raises UsageError where there is nothing of it; do it while no thread simulates.
    """
    if not isinstance(name, str) or not _lockstep.remove(name):
        raise not_allowed("lockstep.remove()", repr(name), "a name that Python added")


def add_queue_order(name, key, summary="", knows_duration=False):
    """Adds an order that scenarios name in queue.order: the job with the least key comes first.

    `key` gets a dictionary for each job: number, submit_s, limit_s, gpus, priority, user, account,
    model, and runs_s, which is 0 unless the order `knows_duration`. It is asked once for each job
    of a simulation, from any thread, and answers a finite number. One of the same name that was
    added before is replaced, and `lockstep.remove(name)` takes it out; do either while no thread
    simulates.
    """
    _added(_lockstep.add_queue_order, name, summary, knows_duration, key)


def add_queue_admission(name, starts, summary=""):
    """Adds an admission that scenarios name in queue.admission: whom the scheduler starts.

    `starts` is asked in every pass, at each submission and end. It gets a dictionary: now_s,
    free_gpus, and two lists of jobs, `waiting` in the queue's order and `running`; and answers the
    numbers of waiting jobs that are to start, in that order. Who finds no place waits on. A job is
    a dictionary: number, gpus, priority, submit_s, limit_s, so_far_s (that it has waited or run),
    user, account, model, and of one that runs limit_end_s and unsaved_s. A pure function, asked
    from any thread. One of the same name that was added before is replaced, and
    `lockstep.remove(name)` takes it out; do either while no thread simulates.
    """
    _added(_lockstep.add_queue_admission, name, starts, summary)


def add_victim_rule(name, key, summary=""):
    """Adds a rule that scenarios name in queue.preemption.victims, where jobs are evicted.

    `key` gets a running job and the waiting one that finds no place, dictionaries as of
    `add_queue_admission`, and answers a finite number: the job with the greatest goes first. It is
    asked for every running job that comes after the waiting one, from any thread. One of the same
    name that was added before is replaced, and `lockstep.remove(name)` takes it out; do either
    while no thread simulates.
    """
    _added(_lockstep.add_victim_rule, name, key, summary)


def add_checkpoint_rule(name, next_checkpoint, summary=""):
    """Adds a rule that scenarios name in run.checkpoint.rule: when the next checkpoint is due.

    `next_checkpoint` gets a dictionary: now_s, trained_s (since the job began, or last stood
    still), stops (so far), interval_s (the scenario's) and blocks_s; and answers seconds from now.
    It is asked for every checkpoint of every trajectory, from any thread. One of the same name that
    was added before is replaced, and `lockstep.remove(name)` takes it out; do either while no
    thread simulates.
    """
    _added(_lockstep.add_checkpoint_rule, name, next_checkpoint, summary)


def add_schedule(
    name,
    order,
    *,
    summary="",
    source="",
    layout="loop",
    virtual_stages=(1, 1),
    micro_batches=None,
    splits_backward=False,
    blocking_sends=False,
    even_ranks=False,
):
    """Adds a pipeline schedule that scenarios name in parallelism.schedule.

    `order` gets a dictionary for each rank, with ranks, chunks, micro_batches and rank, and answers
    the rank's passes in their order, as a schedule file says them: "F0" is the forward pass of the
    first micro batch and "B0" its backward pass, "W0" the gradients of weights where a schedule
    splits backward passes (`splits_backward`), "B3@1" a pass of the second chunk, "F3+B1" a pair.
    A pure function: it is asked once for each rank, from any thread, and its answer is kept.

    `layout` says where chunks lie ("loop", "v", "two_way"), `virtual_stages` the least and the most
    of them that it takes; `micro_batches` gives, for a number of ranks, what the number of micro
    batches has to be a multiple of, and the least (None: any number). Orders are held to the rules
    of those built in: every pass once, and no rank that waits for ever. One of the same name that
    was added before is replaced, and `lockstep.remove(name)` takes it out; do either while no
    thread simulates.
    """
    _added(
        _lockstep.add_schedule, name, order, summary, source, layout, virtual_stages,
        splits_backward, blocking_sends, even_ranks, micro_batches,
    )  # fmt: skip


def add_collective(name, law, shape=None, *, summary="", source=""):
    """Adds a way to run a collective, which is taken wherever it is the fastest.

    `law` gets a dictionary for each call: op ("all_reduce", ...), members, nodes, members_per_node
    and most_members_per_node (of the nodes with fewest and with most), nic_bytes_per_s (line rate),
    members_per_nic, node_bytes_per_s and nvlink_bytes_per_s (of payload: the NICs of a node, a
    GPU's links), efficiency (payload over line rate), start_s, hop_latency_s, ring_hop_latency_s.
    It answers what the call costs, a dictionary or a list of them, one for each protocol:
    latency_s, s_per_byte and, for each byte of payload, nic_bytes and nvlink_bytes that leave a
    member (0), with protocol ("simple", "ll128", "ll"); None where the call is none of its own; or
    a text: why it cannot run there.

    `shape` says which links it loads. It gets op, channels and members, a (node, rail) each, where
    a rail is a place among the members of a node, from 0; and answers {"nvlink_bytes": ...,
    "edges": [(from, to, bytes), ...]}, with numbers of members (-1: the switches), bytes for each
    of payload and, as a fourth, the channels that share them. Without it, the links of a ring.

    Pure functions: each is asked once for each call, from any thread, and its answer is kept. They
    are held to rules: no byte sooner than the links carry it. Exchanges of unequal parts are left
    to those built in. One of the same name that was added before is replaced, and
    `lockstep.remove(name)` takes it out; do either while no thread simulates.
    """
    _added(_lockstep.add_collective, name, law, shape, summary, source)


def add_traffic_process(name, next_round, summary=""):
    """Adds a process that scenarios name as "process" of "background", beside training steps.

    `next_round` is asked when the round before has ended. It gets a dictionary: round (from 0),
    now_s, took_s (by the round before), senders, size_bytes; and answers when the next round
    begins, in seconds, not before now_s; a pair of that and the bytes of each sender; or None: no
    more. A pure function, asked from any thread. One of the same name that was added before is
    replaced, and `lockstep.remove(name)` takes it out; do either while no thread simulates.
    """
    _added(_lockstep.add_traffic_process, name, next_round, summary)


def scenarios():
    """The scenarios that ship, a dictionary each: name, command, file, sentence."""
    return _lockstep.scenarios()


def presets(kind):
    """The names of the presets of a kind: "gpus", "nodes", "models", "stacks", ..."""
    from lockstep._commands import call
    import json

    listed = json.loads(call("list", [kind, "--format=json"], None)["out"])
    return [preset["name"] for preset in listed]
