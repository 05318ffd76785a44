"""One way to run the model: everything that may differ between two recordings, and its command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

STRATEGIES = ("baseline", "ddp", "fsdp_full_shard", "fsdp_shard_grad_op")
WORKLOADS = ("training", "serving")
PRECISIONS = ("bf16", "fp32")
PROFILER_FLAGS = ("profile_memory", "record_shapes", "with_stack")


@dataclass(frozen=True)
class Shape:
    """A GPT-2-like model. `sequence` tokens per sample; serving reads half of them and makes a few more."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    sequence: int


SHAPES = {
    # As wide as GPT-2 and a third as deep: the same kernels, traces a third as long.
    "gpt2_4layers": Shape(layers=4, width=768, heads=12, vocabulary=50_304, sequence=512),
    # For a CPU: steps of milliseconds.
    "tiny": Shape(layers=2, width=64, heads=4, vocabulary=512, sequence=64),
}


@dataclass(frozen=True)
class Setup:
    """What runs. Two recordings are a pair if exactly one of these fields differs.

    `batch` is per rank and micro-batch. `item`: the loss is read after every micro-batch. `data_stall_ms`:
    how long the data set sleeps for each batch. `profiler_flags` are options of torch.profiler.profile.

    Raises:
        ValueError: the fields contradict each other.
    """

    workload: str = "training"
    strategy: str = "baseline"
    precision: str = "bf16"
    shape: str = "gpt2_4layers"
    batch: int = 16
    micro_batches: int = 1
    item: bool = False
    data_stall_ms: int = 0
    compile: bool = False
    cuda_graphs: bool = False
    profiler_flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Equal setups must be equal values, whatever order the flags were given in.
        flags = tuple(flag for flag in PROFILER_FLAGS if flag in self.profiler_flags)
        object.__setattr__(self, "profiler_flags", flags)
        for field, choices in _CHOICES.items():
            if getattr(self, field) not in choices:
                raise ValueError(f"{field} is one of {', '.join(choices)}, not {getattr(self, field)!r}")
        if min(self.batch, self.micro_batches) < 1 or self.data_stall_ms < 0:
            raise ValueError("batch and micro_batches start at 1, data_stall_ms at 0")
        if self.strategy != "baseline" and (self.compile or self.cuda_graphs):
            raise ValueError("torch.compile and CUDA graphs are recorded on one rank: strategy baseline")
        if self.cuda_graphs and (self.compile or self.item or self.micro_batches > 1):
            raise ValueError("the captured step is one eager micro-batch, and nothing is read within it")
        if self.workload == "serving" and (unfit := [name for name in _TRAINING_ONLY if self._is_set(name)]):
            raise ValueError(f"{', '.join(unfit)}: of training, not of serving")

    @property
    def model(self) -> Shape:
        """The shape's numbers."""
        return SHAPES[self.shape]

    def _is_set(self, name: str) -> bool:
        return bool(getattr(self, name) != getattr(Setup, name))

    def arguments(self) -> list[str]:
        """The arguments of `record.py` that give this setup; defaults are left out."""
        words: list[str] = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value == field.default:
                continue
            words.append(_option(field.name))
            if isinstance(value, tuple):
                words += value
            elif not isinstance(value, bool):
                words.append(str(value))
        return words

    def differs_from(self, other: Setup) -> tuple[str, ...]:
        """Names of the fields in which two setups differ."""
        return tuple(
            item.name for item in fields(self) if getattr(self, item.name) != getattr(other, item.name)
        )


_TRAINING_ONLY = ("strategy", "micro_batches", "item", "data_stall_ms", "compile")
_CHOICES: dict[str, Sequence[str]] = {
    "workload": WORKLOADS,
    "strategy": STRATEGIES,
    "precision": PRECISIONS,
    "shape": tuple(SHAPES),
}
_HELP = {
    "workload": "train, or read prompts and decode tokens as an inference server does",
    "strategy": "how ranks share the training; all but baseline need several ranks (torchrun)",
    "precision": "of parameters and arithmetic",
    "shape": "size of the model",
    "batch": "samples per rank and micro-batch",
    "micro_batches": "micro-batches per optimizer step (gradient accumulation)",
    "item": "read loss.item() after every micro-batch",
    "data_stall_ms": "milliseconds the data set sleeps for each batch",
    "compile": "torch.compile the model",
    "cuda_graphs": "replay the training step, or the decode step, as a CUDA graph",
    "profiler_flags": "options of torch.profiler.profile to turn on",
}


def add_options(parser: argparse._ActionsContainer) -> None:
    """One option per field of `Setup`."""
    for field in fields(Setup):
        assert field.default is not MISSING
        options: dict[str, Any] = {"dest": field.name, "help": _HELP[field.name], "default": field.default}
        if isinstance(field.default, bool):
            options["action"] = "store_true"
        elif isinstance(field.default, tuple):
            options |= {"nargs": "+", "choices": PROFILER_FLAGS}
        else:
            options |= {"type": type(field.default), "choices": _CHOICES.get(field.name)}
            options["help"] += " (default: %(default)s)"
        parser.add_argument(_option(field.name), **options)


def setup_of(arguments: argparse.Namespace) -> Setup:
    """The setup that parsed arguments ask for.

    Raises:
        ValueError: the arguments contradict each other.
    """
    values = {field.name: getattr(arguments, field.name) for field in fields(Setup)}
    return Setup(**values | {"profiler_flags": tuple(values["profiler_flags"])})


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
