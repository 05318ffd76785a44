"""One way to run the model: everything that may differ between two recordings, and its command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

STRATEGIES = ("baseline", "ddp", "fsdp_full_shard", "fsdp_shard_grad_op")
WORKLOADS = ("training", "images", "serving")
# tf32: parameters in fp32, products in TF32. amp: parameters in fp32, arithmetic as autocast to bf16 has it.
PRECISIONS = ("bf16", "fp32", "tf32", "amp")
OPTIMIZERS = ("fused", "foreach", "for_loop")
ATTENTIONS = ("sdpa", "unfused")
CACHES = ("static", "growing")
PROFILER_FLAGS = ("profile_memory", "record_shapes", "with_stack", "memory_snapshot")
# GPT-2's own vocabulary is so much smaller than the next multiple of 64 (50,257 and 50,304).
PADDING = 47


@dataclass(frozen=True)
class Shape:
    """A GPT-2-like model. `sequence` tokens per sample; serving reads half of them and makes a few more."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    sequence: int


@dataclass(frozen=True)
class Residual:
    """A ResNet of bottleneck blocks: `stages` blocks in each stage, the first `width` channels wide; `size`
    pixels each way.
    """

    stages: tuple[int, ...]
    width: int
    size: int
    classes: int


SHAPES = {
    # As wide as GPT-2 and a third as deep: the same kernels, traces a third as long.
    "gpt2_4layers": Shape(layers=4, width=768, heads=12, vocabulary=50_304, sequence=512),
    # For a CPU: steps of milliseconds.
    "tiny": Shape(layers=2, width=64, heads=4, vocabulary=512, sequence=64),
    "gpt2_medium": Shape(layers=24, width=1024, heads=16, vocabulary=50_304, sequence=1024),
    "decoder_8layers": Shape(layers=8, width=2048, heads=16, vocabulary=32_768, sequence=1024),
}
RESIDUALS = {
    "resnet50": Residual(stages=(3, 4, 6, 3), width=64, size=224, classes=1000),
    "tiny_resnet": Residual(stages=(1, 1), width=16, size=32, classes=10),
}


@dataclass(frozen=True)
class Setup:
    """What runs. Two recordings are a pair if exactly one of these fields differs.

    `batch` is per rank and micro-batch. `item`: the loss is read after every micro-batch. `data_stall_ms`:
    how long the data set sleeps for each batch. `profiler_flags` are options of torch.profiler.profile, and
    ``memory_snapshot``. `workers` of the data loader; 0 loads in the training process. `augment`: images are
    cropped, flipped and normalised one by one on the CPU instead of lying ready. `pageable`: batches are not
    in pinned memory. `keep_gradients`: zero_grad(set_to_none=False). `unpadded`: a vocabulary of 50,257
    instead of 50,304. `cache` of a server: of fixed size, or grown by a token each step with torch.cat.

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
    optimizer: str = "fused"
    keep_gradients: bool = False
    attention: str = "sdpa"
    unpadded: bool = False
    pageable: bool = False
    workers: int = 0
    augment: bool = False
    channels_last: bool = False
    cache: str = "static"
    profiler_flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Equal setups must be equal values, whatever order the flags were given in.
        flags = tuple(flag for flag in PROFILER_FLAGS if flag in self.profiler_flags)
        object.__setattr__(self, "profiler_flags", flags)
        for field, choices in _CHOICES.items():
            if getattr(self, field) not in choices:
                raise ValueError(f"{field} is one of {', '.join(choices)}, not {getattr(self, field)!r}")
        if min(self.batch, self.micro_batches) < 1 or min(self.data_stall_ms, self.workers) < 0:
            raise ValueError("batch and micro_batches start at 1, data_stall_ms and workers at 0")
        if (self.workload == "images") != (self.shape in RESIDUALS):
            raise ValueError(f"{self.workload} cannot use the shape {self.shape}")
        if self.strategy != "baseline" and (self.compile or self.cuda_graphs):
            raise ValueError("torch.compile and CUDA graphs are recorded on one rank: strategy baseline")
        if self.cuda_graphs and (self.compile or self.item or self.micro_batches > 1):
            raise ValueError("the captured step is one eager micro-batch, and nothing is read within it")
        if self.workload == "serving" and (unfit := [name for name in _TRAINING_ONLY if self._is_set(name)]):
            raise ValueError(f"{', '.join(unfit)}: of training, not of serving")
        if self.workload != "images" and (unfit := [name for name in _IMAGES_ONLY if self._is_set(name)]):
            raise ValueError(f"{', '.join(unfit)}: of images alone")
        if self.cache == "growing" and (self.workload != "serving" or self.cuda_graphs):
            raise ValueError("a growing cache is of serving without CUDA graphs")

    @property
    def model(self) -> Shape:
        """The numbers of a GPT-2-like shape."""
        shape = SHAPES[self.shape]
        return replace(shape, vocabulary=shape.vocabulary - PADDING) if self.unpadded else shape

    @property
    def residual(self) -> Residual:
        """The numbers of a ResNet."""
        return RESIDUALS[self.shape]

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


_TRAINING_ONLY = (
    "strategy", "micro_batches", "item", "data_stall_ms", "compile", "optimizer", "keep_gradients",
    "pageable", "workers",
)  # fmt: skip
_IMAGES_ONLY = ("augment", "channels_last")
_CHOICES: dict[str, Sequence[str]] = {
    "workload": WORKLOADS,
    "strategy": STRATEGIES,
    "precision": PRECISIONS,
    "shape": (*SHAPES, *RESIDUALS),
    "optimizer": OPTIMIZERS,
    "attention": ATTENTIONS,
    "cache": CACHES,
}
_HELP = {
    "workload": "train on text or images, or read prompts and decode tokens as an inference server does",
    "strategy": "how ranks share the training; all but baseline need several ranks (torchrun)",
    "precision": "of parameters and arithmetic",
    "shape": "size of the model",
    "batch": "samples per rank and micro-batch",
    "micro_batches": "micro-batches per optimizer step (gradient accumulation)",
    "item": "read loss.item() after every micro-batch",
    "data_stall_ms": "milliseconds the data set sleeps for each batch",
    "compile": "torch.compile the model",
    "cuda_graphs": "replay the training step, or the decode step, as a CUDA graph",
    "optimizer": "implementation of AdamW",
    "keep_gradients": "fill gradients with zeros instead of dropping them",
    "attention": "one kernel, or a product, a softmax and a product",
    "unpadded": "a vocabulary that is no multiple of 8",
    "pageable": "batches lie in pageable memory, and the host waits for their copy",
    "workers": "processes of the data loader",
    "augment": "prepare images one by one on the CPU",
    "channels_last": "memory format of images and weights",
    "cache": "keys and values at fixed addresses, or concatenated each step",
    "profiler_flags": "options of torch.profiler.profile to turn on, and memory_snapshot",
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
