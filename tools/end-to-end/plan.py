"""What is timed: shapes, batches, recomputation; and how a measurement becomes a row.

Nothing here needs PyTorch or a card.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Shape:
    """A decoder. `kind` "gpt": learned positions, layer norms, biases, GELU, dropout; "llama": rotary
    positions, RMS norms, no biases, SwiGLU."""

    name: str
    kind: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocabulary: int
    tied: bool
    tokens: int  # of a sequence
    source: str
    experts: int = 0  # of a layer, each with `ffn` columns; 0: one MLP
    topk: int = 0  # experts that a token takes

    @property
    def parameters(self):
        """Weights of the matrices: what billions are counted by."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        mlp = (3 if self.kind == "llama" else 2) * self.hidden * self.ffn
        if self.experts:
            mlp = self.experts * (mlp + self.hidden)  # and the router
        ends = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return self.layers * (attention + mlp) + ends


GPT3 = "arXiv:2005.14165, table 2.1; 50,257 words padded to 50,304"
LLAMA32 = "github:meta-llama/llama-models: models/llama3_2/MODEL_CARD.md"


def gpt(name, layers, hidden, heads, tokens):
    return Shape(name, "gpt", layers, hidden, heads, heads, hidden // heads, 4 * hidden, 50304, True,
                 tokens, GPT3)


SHAPES = (
    gpt("gpt-125m", 12, 768, 12, 1024),
    gpt("gpt-350m", 24, 1024, 16, 1024),
    gpt("gpt-760m", 24, 1536, 16, 2048),
    gpt("gpt-1.3b", 24, 2048, 16, 2048),
    gpt("gpt-2.7b", 32, 2560, 32, 2048),
    gpt("gpt-6.7b", 32, 4096, 32, 2048),
    Shape("llama-1.1b", "llama", 22, 2048, 32, 4, 64, 5632, 32000, False, 2048,
          "arXiv:2401.02385, table 2"),
    Shape("llama-3.2-1b", "llama", 16, 2048, 32, 8, 64, 8192, 128256, True, 4096, LLAMA32),
    Shape("llama-3.2-3b", "llama", 28, 3072, 24, 8, 128, 8192, 128256, True, 4096, LLAMA32),
    Shape("llama-2-7b", "llama", 32, 4096, 32, 32, 128, 11008, 32000, False, 4096,
          "arXiv:2307.09288, table 1; github:meta-llama/llama-models: models/llama2/MODEL_CARD.md"),
    Shape("llama-3-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, False, 4096,
          "arXiv:2407.21783, table 3"),
    Shape("olmoe-6.9b", "llama", 16, 2048, 16, 16, 128, 1024, 50304, False, 4096,
          "arXiv:2409.02060, table 10", experts=64, topk=8),
)
SEQUENCES = (1, 2, 4, 8, 16)
RECOMPUTE = ("none", "full")


@dataclasses.dataclass(frozen=True)
class Run:
    shape: Shape
    sequences: int  # of a step, all in one micro batch
    recompute: str

    @property
    def name(self):
        return f"{self.shape.name}-s{self.shape.tokens}-b{self.sequences}-{self.recompute}"

    @property
    def least_gib(self):
        """Weights, gradients and both moments of Adam, all of 16 bit."""
        return 8 * self.shape.parameters / 2**30


def runs_of(names=(), sequences=SEQUENCES, recompute=RECOMPUTE):
    """All runs, or those of the shapes, batches and recomputations named, the small models first."""
    wanted = [s for s in SHAPES if not names or s.name in names]
    return [Run(s, b, r) for s in sorted(wanted, key=lambda s: s.parameters)
            for b in sequences for r in recompute]


# What the card calls itself, and its preset.
CARDS = {
    "NVIDIA A100 80GB PCIe": "A100-PCIe-80GB",
    "NVIDIA A100-SXM4-40GB": "A100-SXM4-40GB",
    "NVIDIA A100-SXM4-80GB": "A100-SXM4-80GB",
    "NVIDIA H100 80GB HBM3": "H100-SXM5-80GB",
    "NVIDIA H100 PCIe": "H100-PCIe-80GB",
    "NVIDIA H200": "H200-SXM-141GB",
    "NVIDIA H800": "H800-SXM-80GB",
    "NVIDIA GH200 480GB": "GH200-96GB",
    "NVIDIA B200": "B200-SXM-180GB",
    "NVIDIA GB200": "GB200-186GB",
}


def row_of(run, measured, kind, date, conditions):
    """A row of `lockstep validate --rows`; tests/reference/README.md has the format.

    `measured`: what training.py printed: times, memory and power, or {"outcome": "oom"}.
    """
    shape = run.shape
    moe = {"moe": {"experts": shape.experts, "topk": shape.topk, "ffn": shape.ffn, "shared_ffn": 0,
                   "dense_layers": 0}} if shape.experts else {}
    row = {
        "id": f"local-{run.name}",
        "source": {"url": "tools/end-to-end, measured by whoever ran it", "table": date},
        "kind": "pretrain",
        "model": {"name": shape.name, "layers": shape.layers, "hidden": shape.hidden,
                  "heads": shape.heads, "kv_heads": shape.kv_heads, "head_dim": shape.head_dim,
                  "ffn": shape.ffn, "gated": shape.kind == "llama", "vocab": shape.vocabulary,
                  "tied": shape.tied, "learned_pos": shape.kind == "gpt", **moe},
        "parallel": {"tp": 1, "pp": 1, "vpp": 1, "dp": 1, "cp": 1, "ep": 1,
                     "sequence_parallel": False, "sharding": "none"},
        "seq": shape.tokens, "micro_batch": run.sequences, "global_batch": run.sequences,
        "recompute": run.recompute, "precision": "bf16",
        "gpu": {"kind": kind, "count": 1, "per_node": 1},
        "network": {"fabric": "none"},
        "stack": "pytorch-eager", "release": conditions.get("torch"),
    }
    if measured.get("outcome") == "oom":
        row["outcome"] = "oom"
        return row
    kept = ("step_seconds", "step_p10", "step_p90", "reserved_memory_gib", "peak_memory_gib",
            "gpu_power_w", "sm_mhz")
    row["measured"] = {key: measured[key] for key in kept if measured.get(key) is not None}
    tokens = run.sequences * shape.tokens
    row["measured"]["tokens_per_s_per_gpu"] = round(tokens / measured["step_seconds"], 1)
    row["step_basis"] = "direct"
    row["extra"] = {"steps": measured["steps"], "first_loss": measured["first_loss"]}
    return row
