"""A small GPT-2: pre-norm blocks, learned positions, output tied to the embedding. Needs PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from recorder.setup import Shape


class Cache:
    """Keys and values of one block, at fixed addresses so that a CUDA graph can be replayed over them."""

    def __init__(self, batch: int, shape: Shape, like: Tensor) -> None:
        self.slots = torch.arange(shape.sequence, device=like.device)
        size = (batch, shape.heads, shape.sequence, shape.width // shape.heads)
        self.keys, self.values = (torch.zeros(size, device=like.device, dtype=like.dtype) for _ in range(2))

    def store(self, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
        """Keep keys and values of these positions; returns which slots each of them may look at."""
        self.keys.index_copy_(2, positions, keys)
        self.values.index_copy_(2, positions, values)
        return self.slots <= positions[:, None]


class GrowingCache:
    """Keys and values of one block, concatenated with those of each step, so all are copied each time."""

    def __init__(self) -> None:
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def store(self, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor | None:
        """Keep keys and values; returns which of them each position may look at, None for all."""
        if self.keys is None or self.values is None or len(positions) > 1:  # a prompt begins anew
            self.keys, self.values = keys, values
            return positions <= positions[:, None]
        self.keys = torch.cat([self.keys, keys], dim=2)
        self.values = torch.cat([self.values, values], dim=2)
        return None


def unfused(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Causal attention as its formula reads: every score is written to memory, and read again."""
    scores = query @ keys.transpose(-2, -1) / math.sqrt(query.shape[-1])
    length = scores.shape[-1]
    later = torch.ones(length, length, dtype=torch.bool, device=scores.device).triu(1)
    return torch.softmax(scores.masked_fill(later, -math.inf), dim=-1) @ values


class Attention(nn.Module):
    """Causal self-attention, over the sequence itself or over a cache."""

    def __init__(self, shape: Shape, attention: str) -> None:
        super().__init__()
        self.attention = attention
        self.heads = shape.heads
        self.input = nn.Linear(shape.width, 3 * shape.width)
        self.output = nn.Linear(shape.width, shape.width)

    def forward(self, x: Tensor, positions: Tensor, cache: Cache | GrowingCache | None) -> Tensor:
        query, keys, values = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.input(x).chunk(3, -1)
        )
        if cache is None and self.attention == "unfused":
            mixed = unfused(query, keys, values)
        elif cache is None:
            mixed = functional.scaled_dot_product_attention(query, keys, values, is_causal=True)
        else:
            mask = cache.store(keys, values, positions)
            mixed = functional.scaled_dot_product_attention(query, cache.keys, cache.values, attn_mask=mask)
        return self.output(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention and a perceptron, each added to what came in."""

    def __init__(self, shape: Shape, attention: str) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
        self.attention = Attention(shape, attention)
        self.perceptron = nn.Sequential(
            nn.Linear(shape.width, 4 * shape.width),
            nn.GELU(approximate="tanh"),
            nn.Linear(4 * shape.width, shape.width),
        )

    def forward(self, x: Tensor, positions: Tensor, cache: Cache | GrowingCache | None) -> Tensor:
        x = x + self.attention(self.norm_1(x), positions, cache)
        return x + self.perceptron(self.norm_2(x))


class Gpt(nn.Module):
    """The model: tokens [batch, n] at `positions` [n] to logits [batch, n, vocabulary]."""

    def __init__(self, shape: Shape, attention: str = "sdpa") -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.sequence, shape.width)
        self.blocks = nn.ModuleList(Block(shape, attention) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(
        self, tokens: Tensor, positions: Tensor, caches: Sequence[Cache | GrowingCache] | None = None
    ) -> Tensor:
        x = self.tokens(tokens) + self.positions(positions)
        for index, block in enumerate(self.blocks):
            x = block(x, positions, caches[index] if caches else None)
        return self.head(self.norm(x))
