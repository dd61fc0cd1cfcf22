#!/usr/bin/env python3
"""Times real training steps on one GPU, and writes them as rows that `lockstep validate` reads.

Exit status: 0 done, 1 a run failed (the others are written), 2 a mistake on the command line,
3 there is no PyTorch or no card that could be timed, 130 interrupted (what was measured is written).
"""

import argparse
import dataclasses
import datetime
import json
import os
import subprocess
import sys

import plan

TRAINING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "training.py")
MOST_SECONDS = 1200  # of a run; the longest takes a few minutes
FAILED, BAD_INPUT, NO_CARD, INTERRUPTED = 1, 2, 3, 130


class NoCard(Exception):
    """There is nothing that could be timed."""


class RunFailed(Exception):
    """This run gives no row; the next one may."""


def start_training(argument):
    """Runs training.py in a process of its own: what it breaks or leaks ends with it."""
    try:
        done = subprocess.run([sys.executable, TRAINING, argument], capture_output=True, text=True,
                              timeout=MOST_SECONDS, check=False)
    except subprocess.TimeoutExpired as e:
        raise RunFailed(f"not done after {MOST_SECONDS} s") from e
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    if done.returncode == NO_CARD:
        raise NoCard(lines[-1])
    if done.returncode != 0:
        raise RunFailed(lines[-1])
    return json.loads(done.stdout.strip().splitlines()[-1])


def card_kind(name, given):
    if given:
        return given
    if name not in plan.CARDS:
        raise NoCard(f"no preset is known for {name}; name one with --gpu (lockstep list gpus)")
    return plan.CARDS[name]


def write_rows(path, about, conditions, rows):
    """As a whole or not at all."""
    with open(f"{path}.tmp", "w", encoding="utf-8") as file:
        head = json.dumps({"about": about, "conditions": conditions}, indent=1)
        lines = ",\n".join("  " + json.dumps(row) for row in rows)
        file.write(head[: head.rindex("\n}")] + ',\n "rows": [\n' + lines + "\n ]\n}\n")
    os.replace(f"{path}.tmp", path)


def row_text(run, measured):
    if measured.get("outcome") == "oom":
        return f"{run.name:<36} out of memory"
    power = measured.get("gpu_power_w")
    return (f"{run.name:<36} {measured['step_seconds'] * 1e3:10.2f} ms  "
            f"{measured['reserved_memory_gib']:6.2f} GiB" + (f"  {power:4.0f} W" if power else ""))


def measure(runs, output, kind, train=start_training, out=sys.stdout, date=None):
    """Times all runs and writes their rows after each. Returns the exit status. `train`: what
    start_training() does."""
    card = train("--probe")
    kind = card_kind(card["device"], kind)
    date = date or datetime.date.today().isoformat()
    about = f"Training steps of {card['device']}, timed by tools/end-to-end on {date}."
    rows, failed, too_large = [], 0, set()
    for run in runs:
        group = (run.shape.name, run.recompute)
        if run.least_gib > card["memory_gib"] or group in too_large:
            print(f"{run.name:<36} left out: it does not fit", file=out, flush=True)
            continue
        request = {"shape": dataclasses.asdict(run.shape), "sequences": run.sequences,
                   "recompute": run.recompute}
        try:
            measured = train(json.dumps(request))
        except RunFailed as e:
            failed += 1
            print(f"{run.name:<36} failed: {e}", file=out, flush=True)
            continue
        except KeyboardInterrupt:
            return INTERRUPTED
        if measured.get("outcome") == "oom":
            too_large.add(group)
        print(row_text(run, measured), file=out, flush=True)
        rows.append(plan.row_of(run, measured, kind, date, card))
        write_rows(output, about, {key: str(value) for key, value in card.items()}, rows)
    if rows:
        print(f"{output}: {len(rows)} rows", file=out)
    return FAILED if failed else 0


def list_runs(runs, out=sys.stdout):
    for run in runs:
        print(f"{run.name:<36} {run.shape.parameters / 1e9:6.3f} B parameters, more than "
              f"{run.least_gib:5.1f} GiB", file=out)


def listed(parser, option, text, allowed):
    """The words of a list with commas, each of them allowed."""
    words = [word for word in text.split(",") if word]
    for word in words:
        if word not in allowed:
            parser.error(f"{option}: found {word}; allowed: {', '.join(allowed)}")
    return words


def main(arguments):
    names = [shape.name for shape in plan.SHAPES]
    parser = argparse.ArgumentParser(
        description="Times real training steps on one GPU, and writes them as rows that `lockstep "
                    "validate --rows` reads. Nothing else may run on the card meanwhile.",
        epilog="Exit status: 0 done, 1 a run failed (the others are written), 2 a mistake on the "
               "command line, 3 no PyTorch or no card, 130 interrupted (what was measured is "
               "written).")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the rows to this file")
    parser.add_argument("--list", action="store_true", help="print what would be timed, and end")
    parser.add_argument("--only", metavar="NAMES", default="",
                        help="only these shapes, separated by commas: " + ", ".join(names))
    parser.add_argument("--sequences", metavar="NUMBERS", default="",
                        help="only these batches: " + ", ".join(map(str, plan.SEQUENCES)))
    parser.add_argument("--recompute", choices=plan.RECOMPUTE, help="only with or without it")
    parser.add_argument("--gpu", metavar="KIND",
                        help="the card's preset, where its own name does not tell (lockstep list gpus)")
    given = parser.parse_args(arguments)
    wanted = listed(parser, "--only", given.only, names)
    batches = listed(parser, "--sequences", given.sequences, [str(b) for b in plan.SEQUENCES])
    runs = plan.runs_of(wanted, [int(b) for b in batches] or plan.SEQUENCES,
                        [given.recompute] if given.recompute else plan.RECOMPUTE)
    if given.list:
        list_runs(runs)
        return 0
    if not given.output:
        parser.error("no --output; for example: -o measured.json")
    folder = os.path.dirname(os.path.abspath(given.output))
    if not os.access(folder, os.W_OK):
        parser.error(f"--output: {folder} cannot be written")
    try:
        return measure(runs, given.output, given.gpu)
    except (NoCard, RunFailed) as e:
        print(f"measure.py: {e}", file=sys.stderr)
        return NO_CARD
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
