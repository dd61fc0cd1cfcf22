#!/usr/bin/env python3
"""Times training steps of one run in a process of its own, and prints what it measured as JSON.

    training.py --probe        the card and the versions of the libraries
    training.py RUN            RUN: JSON with the fields of plan.Shape, sequences, recompute

Exit status: 0 measured (or out of memory, which is a result), 1 a call failed or the loss is wrong,
3 there is no PyTorch or no card. `measure` starts it.
"""

import json
import math
import os
import statistics
import sys
import time

# Large models would otherwise lose a tenth of the card to fragments. Read when PyTorch is imported.
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")

NOTHING_TO_MEASURE = 3
WARM_SECONDS = 4  # until the clock has settled at the power limit
TIMED_SECONDS = 8  # several of the driver's power readings
FEWEST_STEPS, MOST_STEPS = 20, 500
LEAST_TORCH = (2, 5)  # scaled_dot_product_attention with grouped queries
LEAST_TORCH_OF_EXPERTS = (2, 9)  # grouped products with gradients
BUSY_BYTES = 2 << 30  # more is held by somebody else


def give_up(reason):
    print(reason, file=sys.stderr)
    sys.exit(NOTHING_TO_MEASURE)


def version_of(torch):
    return tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def import_torch():
    try:
        import torch
    except ImportError as e:
        give_up(f"there is no PyTorch for {sys.executable}: {e}")
    if version_of(torch) < LEAST_TORCH:
        give_up(f"PyTorch {torch.__version__} is too old: 2.5 or later is needed")
    if not torch.cuda.is_available():
        give_up("PyTorch sees no GPU here")
    return torch


def probe(torch):
    properties = torch.cuda.get_device_properties(0)
    free, total = torch.cuda.mem_get_info()
    if total - free > BUSY_BYTES:
        give_up(f"another program holds {(total - free) / 2**30:.1f} GiB of {properties.name}; "
                "nothing else may run on it")
    if properties.major < 8:
        give_up(f"{properties.name} has no bfloat16 matrix products")
    return {"device": properties.name, "memory_gib": round(total / 2**30, 2),
            "torch": torch.__version__, "cuda": torch.version.cuda,
            "cudnn": str(torch.backends.cudnn.version())}


def train(torch, run, sensors):
    import model as models
    import plan

    shape = plan.Shape(**run["shape"])
    if shape.experts and version_of(torch) < LEAST_TORCH_OF_EXPERTS:
        raise RuntimeError(f"PyTorch {torch.__version__} is too old for experts: 2.9 or later is needed")
    torch.manual_seed(1)
    torch.set_default_device("cuda")
    torch.set_default_dtype(torch.bfloat16)
    model = models.Decoder(shape, run["recompute"])
    torch.set_default_dtype(torch.float32)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    batch = (run["sequences"], shape.tokens)
    words = torch.randint(shape.vocabulary, batch)
    targets = torch.randint(shape.vocabulary, batch)

    def step():
        # Gradients stay where they are, as frameworks with gradient buffers have them.
        optimiser.zero_grad(set_to_none=False)
        loss = model(words, targets)
        loss.backward()
        optimiser.step()
        return loss.detach()

    first_loss = float(step())
    check_loss(first_loss, shape.vocabulary)
    torch.cuda.synchronize()

    began, steps = time.monotonic(), 0
    while steps < 3 or time.monotonic() - began < WARM_SECONDS:
        step()
        torch.cuda.synchronize()
        steps += 1
    rough = (time.monotonic() - began) / steps
    count = min(MOST_STEPS, max(FEWEST_STEPS, math.ceil(TIMED_SECONDS / rough)))

    torch.cuda.reset_peak_memory_stats()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    sensors.start()
    events[0].record()
    for event in events[1:]:
        loss = step()
        event.record()
    torch.cuda.synchronize()
    readings = sensors.stop()
    if not math.isfinite(float(loss)):
        raise RuntimeError(f"the loss is {float(loss)} after {steps + count} steps")

    seconds = sorted(a.elapsed_time(b) * 1e-3 for a, b in zip(events, events[1:]))
    tenths = statistics.quantiles(seconds, n=10)
    return {"step_seconds": statistics.median(seconds), "step_p10": tenths[0],
            "step_p90": tenths[-1], "steps": count, "first_loss": round(first_loss, 3),
            "reserved_memory_gib": torch.cuda.max_memory_reserved() / 2**30,
            "peak_memory_gib": torch.cuda.max_memory_allocated() / 2**30, **readings}


def check_loss(loss, vocabulary):
    """A fresh model knows nothing: its loss is the logarithm of the vocabulary, and up to half the
    square of the logits' spread more (0.02 sqrt(hidden), 0.8 at 4096)."""
    due = math.log(vocabulary)
    if not due - 0.5 < loss < due + 1.5:
        raise RuntimeError(f"wrong result: the first loss is {loss:.3f} where {due:.3f} was due")


def main():
    import sensors

    torch = import_torch()
    if sys.argv[1:] == ["--probe"]:
        answer = probe(torch)
        answer.update(sensors.Sensors(torch).conditions())
    else:
        try:
            answer = train(torch, json.loads(sys.argv[1]), sensors.Sensors(torch))
        except torch.cuda.OutOfMemoryError:
            answer = {"outcome": "oom"}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
