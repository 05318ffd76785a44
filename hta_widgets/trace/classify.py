"""Classifies events by two tables: one of trace categories, one of name rules for device events.

The trace's own category (``cat``) decides first. The name rules apply only where it cannot decide, because
vendors put collectives, copies and compute under one category; the first match wins. A user's own rules come
before the built-in ones (`class_rules`, `register`). Rules run once per distinct (category, name), never per
event.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from hta_widgets.demangling import demangled
from hta_widgets.trace.ordering import distinct


class EventClass(IntEnum):
    """Classes of events, the same in tables, colours and browser. The numbers are part of the interface."""

    COMPUTE = 0
    COMMUNICATION = 1
    MEMORY_COPY = 2
    MEMORY_SET = 3
    SYNC = 4
    HOST_OP = 5
    RUNTIME = 6
    ANNOTATION = 7
    PYTHON = 8
    OVERHEAD = 9
    OTHER = 10

    @property
    def label(self) -> str:
        """Name as shown in tables: ``"compute"``, ``"memory_copy"``, ..."""
        return self.name.lower()


_DEVICE_CLASSES = {kind.label: kind for kind in EventClass if kind <= EventClass.SYNC}


@dataclass(frozen=True)
class Category:
    """How events of one trace category are read."""

    event_class: EventClass  # the class of its events, unless a name rule says otherwise
    # its events are work of the accelerator (never true for waiting, annotations or counters)
    device: bool = False
    named: bool = False  # the name rules apply; without a matching rule the class is ``event_class``
    # an event that matches no name rule counts as unclassified (its default class is a guess)
    strict: bool = False


COUNTER_RANGE: Final = "cuda_profiler_range"
"""The category of rows with counters of a kernel: they take the place of the kernel's own."""

# Kineto's activity types (libkineto/src/ActivityType.cpp) and the names of the 2021 schema (capitalised).
CATEGORIES: dict[str, Category] = {
    "kernel": Category(EventClass.COMPUTE, device=True, named=True),
    "Kernel": Category(EventClass.COMPUTE, device=True, named=True),
    "gpu_memcpy": Category(EventClass.MEMORY_COPY, device=True),
    "Memcpy": Category(EventClass.MEMORY_COPY, device=True),
    "gpu_memset": Category(EventClass.MEMORY_SET, device=True),
    "Memset": Category(EventClass.MEMORY_SET, device=True),
    "mtia_ccp_events": Category(EventClass.COMPUTE, device=True, named=True, strict=True),
    "collective_comm": Category(EventClass.COMMUNICATION, device=True),
    "cuda_sync": Category(EventClass.SYNC),
    "cuda_event": Category(EventClass.SYNC),
    "xpu_sync": Category(EventClass.SYNC),
    "cpu_op": Category(EventClass.HOST_OP),
    "Operator": Category(EventClass.HOST_OP, named=True),
    "hpu_op": Category(EventClass.RUNTIME),
    "cuda_runtime": Category(EventClass.RUNTIME),
    "cuda_driver": Category(EventClass.RUNTIME),
    "Runtime": Category(EventClass.RUNTIME),
    "mtia_runtime": Category(EventClass.RUNTIME),
    "xpu_runtime": Category(EventClass.RUNTIME),
    "xpu_driver": Category(EventClass.RUNTIME),
    "privateuse1_runtime": Category(EventClass.RUNTIME),
    "privateuse1_driver": Category(EventClass.RUNTIME),
    "glow_runtime": Category(EventClass.RUNTIME),
    "user_annotation": Category(EventClass.ANNOTATION),
    "gpu_user_annotation": Category(EventClass.ANNOTATION),
    "python_function": Category(EventClass.PYTHON),
    "overhead": Category(EventClass.OVERHEAD),
    "Trace": Category(EventClass.OTHER),
    COUNTER_RANGE: Category(EventClass.OTHER),
    "mtia_insight": Category(EventClass.OTHER),
    # What `reader.dialects` calls the rows of other writers that Kineto has no category for.
    "enqueue": Category(EventClass.RUNTIME),
    "dequeue": Category(EventClass.RUNTIME),
    "npu_summary": Category(EventClass.OTHER),
    "cuda_span": Category(EventClass.OTHER),
}
UNKNOWN = Category(EventClass.OTHER)


@dataclass(frozen=True)
class Rule:
    """A name pattern (``re.search``) and the class of the events it matches."""

    pattern: re.Pattern[str]
    event_class: EventClass


def _rules(event_class: EventClass, *patterns: str) -> tuple[Rule, ...]:
    return tuple(Rule(re.compile(pattern), event_class) for pattern in patterns)


# A collective in a function's name; words such as "small_reduce" hold one by chance.
COLLECTIVE = r"((?<![A-Za-z])all|All)_?([rR]educe|[gG]ather|[tT]o_?[aA]ll)|[rR]educe_?[sS]catter"

# Order matters: a copy made by a collective library's own helper is still a copy, so memory comes first.
# tests/trace/kernel_names.tsv holds real names for each rule, and names that only look as if they matched.
DEVICE_RULES: tuple[Rule, ...] = (
    # ROCm runs copies and fills as shaders and labels them kernels (ROCclr's blit kernels, rocprofiler's
    # names).
    *_rules(
        EventClass.MEMORY_COPY,
        r"^__amd_rocclr_copy",
        r"^Copy(Device|Host)To(Device|Host)\b",
        r"^MEMORY_COPY_",
        r"^(hip)?Memcpy",
    ),
    *_rules(EventClass.MEMORY_SET, r"^__amd_rocclr_fill", r"^FillBuffer\b", r"^(hip)?Memset"),
    *_rules(
        EventClass.COMMUNICATION,
        # Vendor libraries: NCCL (ncclKernel_*, ncclDevKernel_*, ncclSymkDevKernel_*), RCCL, HCCL, MSCCL.
        r"\b(nccl|rccl|[hH]ccl|hcom_)",
        r"\bmsccl",
        # Any function named after a collective: PyTorch's symmetric memory, vLLM, SGLang, aiter, MSCCL++,
        # TensorRT-LLM, FlashInfer, Triton. Inductor names its kernels after the operators it fused, waiting
        # for a collective among them, but they exchange nothing.
        rf"\b(?!triton_\w*fused)\w*({COLLECTIVE})\w*(?!\w*::)",
        r"cross_device_reduce",
        r"\bmultimem_",
        r"\brmsNormLamport",
        # PyTorch's symmetric memory, whatever the function.
        r"\bc10d::(symmetric_memory|intra_node_comm|\w+_extension)::",
        # Expert parallelism: DeepEP and its relatives under any namespace, mori, pplx, TensorRT-LLM, Flux,
        # Triton-distributed. Counting which token goes where (`layout`, `_prologue`), converting, staging and
        # what becomes of tokens that have arrived (`_epilogue`) stay local.
        r"\b(internode|internode_ll|intranode)::(?!\w*layout)",
        r"(\b|_)ep::(\w+::)*(?!\w*(layout|_prologue|_epilogue))\w*(dispatch|combine|notify|barrier|sync)",
        r"\bdeep_ep::(\w+::)*(pp_(send|recv)|engram_fetch|lb_(reduce_grads|prefetch_weights))",
        r"\bEp(Dispatch|Combine)(?!CopyToStaging|QuantizeInput)",
        r"(?i)\b(moe)?a2a_?(prepare)?(dispatch|combine|single)",
        r"^(void )?(dispatch|combine)Kernel\b",
        r"\bkernel_(dispatch|combine)_token",
        # One-sided libraries, and the buffers of Transformer Engine.
        r"\bnvshmem",
        r"\bbarrier_on_stream_kernel",
        r"\brocshmem",
        r"\bk?userbuffers_",
    ),
    # MTIA (mtia_ccp_events): execution engines, DMA, event records and waits.
    *_rules(EventClass.SYNC, r"^event_(record|wait)"),
    *_rules(EventClass.MEMORY_COPY, r"^dma(_|$)"),
    *_rules(EventClass.COMMUNICATION, r"^collective_subgraph_execution"),
    *_rules(EventClass.COMPUTE, r"^(pe_exe|job_exe|packet|cpum_exe_subgraph|merge|remote)"),
)

# In traces of 2021, annotations are operators; these are the ones that PyTorch itself writes.
OPERATOR_RULES: tuple[Rule, ...] = _rules(
    EventClass.ANNOTATION,
    r"^ProfilerStep\s*[#*]",
    r"^Optimizer\.",
    r"^enumerate\(DataLoader\)",
    r"^## .* ##$",
)

# Words of a collective's name that also occur in the names of ordinary kernels (template arguments, batch
# norm).
_ARGUMENTS = re.compile(r"[<(].*", re.DOTALL)

_registered: list[Rule] = []


def make_rule(pattern: str, event_class: EventClass | str) -> Rule:
    """A rule for device work.

    Args:
        pattern: regular expression, searched anywhere in the full event name.
        event_class: COMPUTE, COMMUNICATION, MEMORY_COPY, MEMORY_SET or SYNC, or its label.

    Raises:
        ValueError: the class is not one of device work, or the pattern is not a regular expression.
    """
    label = event_class if isinstance(event_class, str) else EventClass(event_class).label
    if label not in _DEVICE_CLASSES:
        raise ValueError(f"{label!r} is no class of device work, which are {', '.join(_DEVICE_CLASSES)}")
    try:
        return Rule(re.compile(pattern), _DEVICE_CLASSES[label])
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error


def register(pattern: str, event_class: EventClass | str) -> Rule:
    """Put a name rule for device work in front of the built-in ones, for every trace opened afterwards.

    `Trace.open(path, classes=...)` and a file `hta_widgets.toml` beside the traces do so for one trace; their
    rules come before registered ones.

    Args:
        pattern: regular expression, searched anywhere in the full event name.
        event_class: COMPUTE, COMMUNICATION, MEMORY_COPY, MEMORY_SET or SYNC, or its label.

    Returns:
        The rule, to pass to `unregister`.

    Raises:
        ValueError: the class is not one of device work, or the pattern is not a regular expression.
    """
    rule = make_rule(pattern, event_class)
    _registered.insert(0, rule)
    return rule


def unregister(rule: Rule) -> None:
    """Remove a rule added by `register`. Traces that are already open keep it."""
    _registered.remove(rule)


def registered() -> tuple[Rule, ...]:
    """The rules added by `register`, the latest first."""
    return tuple(_registered)


def category_of(name: str) -> Category:
    """How events of the trace category ``name`` are read; unknown ones by their suffix, else as other."""
    known = CATEGORIES.get(name)
    if known is not None:
        return known
    if name.endswith(("_runtime", "_driver")):
        return Category(EventClass.RUNTIME)
    if name.endswith("_sync"):
        return Category(EventClass.SYNC)
    # vendors' own: `mlu_memcpy` of Cambricon, `privateuse1_kernel`
    if name.endswith("_memcpy"):
        return CATEGORIES["gpu_memcpy"]
    if name.endswith("_memset"):
        return CATEGORIES["gpu_memset"]
    if name.endswith("_kernel"):
        return CATEGORIES["kernel"]
    return UNKNOWN


def classify(category: str, name: str, rules: Sequence[Rule] | None = None) -> tuple[EventClass, bool]:
    """Class of one (category, name), and whether a table or rule decided it (False: the class is a guess).

    Args:
        rules: what comes before the built-in rules, such as a trace's own; by default those registered.
    """
    return _classified(category, name, registered() if rules is None else tuple(rules))


# Ranks of a job share most of their names, and a rank that is read again has the same.
@lru_cache(maxsize=1 << 14)
def _classified(category: str, name: str, rules: tuple[Rule, ...]) -> tuple[EventClass, bool]:
    kind = category_of(category)
    if kind.device:
        for rule in rules:
            if rule.pattern.search(name):
                return rule.event_class, True
    if kind.named:
        # Template and call arguments name other functions (a compute kernel may be instantiated with a
        # functor called all_reduce), so the built-in rules see only the function's own name. An operator has
        # no arguments: its parentheses belong to the name, as in `enumerate(DataLoader)#...`.
        text, built_in = (own_name(demangled(name)), DEVICE_RULES) if kind.device else (name, OPERATOR_RULES)
        for rule in built_in:
            if rule.pattern.search(text):
                return rule.event_class, True
    return kind.event_class, kind is not UNKNOWN and not kind.strict


def classify_events(
    category: npt.NDArray[np.int32],
    categories: list[str],
    name: npt.NDArray[np.int32],
    names: list[str],
    rules: Sequence[Rule] | None = None,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Class, "is device work" and "class is a guess" of every event, from its category and name codes.

    ``rules`` come before the built-in ones, as in `classify`.
    """
    pairs = category.astype(np.int64) * max(len(names), 1) + name
    found_pairs, inverse = distinct(pairs)
    rules = registered() if rules is None else tuple(rules)
    found = [
        classify(categories[pair // len(names)], names[pair % len(names)], rules)
        for pair in found_pairs.tolist()
    ]
    classes = np.array([event_class for event_class, _ in found], np.uint8)
    guessed = np.array([not decided for _, decided in found], np.bool_)
    device = np.array([category_of(text).device for text in categories], np.bool_)
    return classes[inverse], device[category], guessed[inverse]


def is_optimizer_step(name: str) -> bool:
    """Whether that is how the profiler calls a step of an optimizer."""
    return name.startswith("Optimizer.step#")


def own_name(name: str) -> str:
    """The function's own name: without template arguments, parameters and the anonymous namespace."""
    plain = name.replace("(anonymous namespace)::", "")
    return _ARGUMENTS.sub("", plain)
