"""The decoders that are trained: plain PyTorch, nothing fused or compiled, 16-bit weights.

What is kept for the backward pass is kept on purpose, tensor by tensor, so that the memory models
can be held against it: see README.md.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

DROPOUT = 0.1  # of the GPT shapes: on the embedding and on both branches of a layer
ROTARY_BASE = 500000.0
EPSILON = 1e-5


class RmsNormFunction(torch.autograd.Function):
    """Keeps its input in 16 bit and a number for each token, where autograd would keep 32-bit copies."""

    @staticmethod
    def forward(ctx, x, weight):
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPSILON)
        ctx.save_for_backward(x, weight, scale)
        return (wide * scale).to(x.dtype) * weight

    @staticmethod
    def backward(ctx, gradient):
        x, weight, scale = ctx.saved_tensors
        normed = x.float() * scale
        wide = gradient.float()
        weighted = wide * weight.float()
        dx = scale * (weighted - normed * (weighted * normed).mean(-1, keepdim=True))
        dweight = (wide * normed).sum(tuple(range(x.dim() - 1)))
        return dx.to(x.dtype), dweight.to(weight.dtype)


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return RmsNormFunction.apply(x, self.weight)


def rotary_table(tokens, head_dim, device):
    """Cosines and sines, [tokens, head_dim] each, as rotate_half() wants them."""
    rates = ROTARY_BASE ** (-torch.arange(0, head_dim, 2, device=device, dtype=torch.float32) / head_dim)
    angles = torch.arange(tokens, device=device, dtype=torch.float32)[:, None] * rates[None, :]
    angles = torch.cat((angles, angles), -1)
    return angles.cos().to(torch.bfloat16), angles.sin().to(torch.bfloat16)


def rotated(x, table):
    """x: [batch, heads, tokens, head_dim]."""
    cos, sin = table
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat((-right, left), -1) * sin


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        biases = shape.kind == "gpt"
        width, kv_width = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        # Three products: of one in a row, V's view would keep the unrotated Q and K alive.
        self.q = nn.Linear(shape.hidden, width, bias=biases)
        self.k = nn.Linear(shape.hidden, kv_width, bias=biases)
        self.v = nn.Linear(shape.hidden, kv_width, bias=biases)
        self.out = nn.Linear(width, shape.hidden, bias=biases)

    def heads_of(self, x, heads):
        batch, tokens, _ = x.shape
        return x.view(batch, tokens, heads, self.shape.head_dim).transpose(1, 2)

    def forward(self, x, table):
        q = self.heads_of(self.q(x), self.shape.heads)
        k = self.heads_of(self.k(x), self.shape.kv_heads)
        v = self.heads_of(self.v(x), self.shape.kv_heads)
        if table is not None:
            q, k = rotated(q, table), rotated(k, table)
        grouped = self.shape.kv_heads != self.shape.heads
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped)
        return self.out(y.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, shape):
        super().__init__()
        gated = shape.kind == "llama"
        self.up = nn.Linear(shape.hidden, shape.ffn, bias=not gated)
        self.down = nn.Linear(shape.ffn, shape.hidden, bias=not gated)
        self.gate = nn.Linear(shape.hidden, shape.ffn, bias=False) if gated else None

    def forward(self, x):
        if self.gate is None:
            return self.down(F.gelu(self.up(x)))
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    """A gated MLP for each expert; a token takes `topk` of them, and none is dropped. One grouped
    product each for gate, up and down, over rows that are sorted by expert; no number goes to the
    host on the way."""

    def __init__(self, shape):
        super().__init__()
        self.experts, self.topk = shape.experts, shape.topk
        self.router = nn.Linear(shape.hidden, shape.experts, bias=False)
        self.gate = nn.Parameter(torch.empty(shape.experts, shape.hidden, shape.ffn))
        self.up = nn.Parameter(torch.empty(shape.experts, shape.hidden, shape.ffn))
        self.down = nn.Parameter(torch.empty(shape.experts, shape.ffn, shape.hidden))

    def forward(self, x):
        tokens = x.flatten(0, 1)
        shares, chosen = self.router(tokens).float().softmax(-1).topk(self.topk, -1)
        chosen = chosen.flatten()
        order = chosen.argsort(stable=True)
        token = order // self.topk
        counts = torch.zeros(self.experts, dtype=torch.int32).scatter_add_(
            0, chosen, torch.ones(chosen.shape, dtype=torch.int32))
        ends = counts.cumsum(0, dtype=torch.int32)
        rows = tokens[token]
        middle = F.silu(torch._grouped_mm(rows, self.gate, offs=ends)) * torch._grouped_mm(
            rows, self.up, offs=ends)
        out = torch._grouped_mm(middle, self.down, offs=ends)
        out = out * shares.flatten()[order, None].to(out.dtype)
        return torch.zeros_like(tokens).index_add_(0, token, out).view_as(x)


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        norm = RmsNorm if shape.kind == "llama" else nn.LayerNorm
        self.dropout = 0.0 if shape.kind == "llama" else DROPOUT
        self.attention_norm, self.mlp_norm = norm(shape.hidden), norm(shape.hidden)
        self.attention = Attention(shape)
        self.mlp = Experts(shape) if shape.experts else Mlp(shape)

    def forward(self, x, table):
        x = x + F.dropout(self.attention(self.attention_norm(x), table), self.dropout)
        return x + F.dropout(self.mlp(self.mlp_norm(x)), self.dropout)


class Decoder(nn.Module):
    """Requires that the default device and format are set, so that nothing is made twice."""

    def __init__(self, shape, recompute):
        super().__init__()
        self.recompute = recompute == "full"
        self.dropout = 0.0 if shape.kind == "llama" else DROPOUT
        self.words = nn.Embedding(shape.vocabulary, shape.hidden)
        self.places = nn.Embedding(shape.tokens, shape.hidden) if shape.kind == "gpt" else None
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = RmsNorm(shape.hidden) if shape.kind == "llama" else nn.LayerNorm(shape.hidden)
        self.head = nn.Linear(shape.hidden, shape.vocabulary, bias=False)
        if shape.tied:
            self.head.weight = self.words.weight
        self.table = None
        if shape.kind == "llama":
            self.table = rotary_table(shape.tokens, shape.head_dim, self.words.weight.device)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
            elif isinstance(module, Experts):
                for weight in (module.gate, module.up, module.down):
                    nn.init.normal_(weight, std=0.02)

    def forward(self, words, targets):
        x = self.words(words)
        if self.places is not None:
            x = x + self.places.weight[: words.shape[1]]
        x = F.dropout(x, self.dropout)
        for layer in self.layers:
            if self.recompute:
                x = checkpoint(layer, x, self.table, use_reentrant=False,
                               preserve_rng_state=self.dropout > 0)
            else:
                x = layer(x, self.table)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
