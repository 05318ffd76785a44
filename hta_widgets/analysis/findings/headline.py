"""The answer of the overview in one sentence: what to change first, in the order of the findings."""

from __future__ import annotations

import pandas as pd

from hta_widgets.analysis.findings.finding import NOTE_PCT, WARNING_PCT
from hta_widgets.analysis.findings.savings import OWN_COST
from hta_widgets.analysis.findings.sections import (
    CHECKED,
    LATER,
    MEMORY,
    OPEN,
    RECORDING,
    SAVES,
    UNKNOWN,
    VERDICT,
)
from hta_widgets.formatting import counted, percent

__all__ = ["IDLE_QUESTION", "MAIN_QUESTION", "WORDS", "sentence", "title"]

MAIN_QUESTION = "what devices do"
IDLE_QUESTION = "why devices are idle"
_BEYOND = 1.1
_NOT_TOLD = "Where time goes cannot be told"

WORDS = {
    "data_stall": "Waiting for the data loader",
    "sync_calls": "Waiting for the host, blocked in synchronising calls,",
    "idle_host": "Waiting for the host to launch work",
    "host_stall": "A host that stops for a while",
    "unmarked_host": "Waiting for host work that nothing names",
    "launch_bound": "Waiting for launches to arrive",
    "tiny_kernels": "Going from one kernel to the next",
    "optimizer_not_fused": "Launching the optimizer's work piece by piece",
    "zero_grad_fills": "Zeroing gradients",
    "allocator_calls": "Allocating memory with the driver",
    "buffers_broadcast": "Broadcasting DDP's buffers",
    "bucket_copies": "Copying DDP's buckets back into gradients",
    "layout_transposes": "Turning the layout of tensors around",
    "tensor_copies": "Copying and casting tensors",
    "device_wait": "Launched work that does not start",
    "straggler": "Waiting for a late rank",
    "pipeline_bubble": "Waiting of the pipeline's stages for each other",
    "exposed_communication": "Communication without compute",
    "late_collective": "Communication that starts late",
    "fsdp_prefetch": "Gathering FSDP's parameters too late",
    "tiny_collectives": "Communicating in many small collectives",
    "slowed_by_communication": "Communication that slows compute",
    "memory_copies": "Copying memory without compute",
    "pageable_copies": "Copying from or to pageable memory",
    "slow_copies": "Copying far below the speed of the link",
    "python_heavy": "Running Python in one kind of module",
    "clock_drift": "Slowing down from step to step",
    "slow_kernels": "A rank with slow kernels",
    "imbalance": "A rank with more work",
    "mutual_waiting": "Waiting of the ranks for each other in turn",
    "fp32_units": "Multiplying in full fp32",
    "tf32_units": "Multiplying in TF32 instead of 16 bits",
    "attention_not_fused": "Writing the scores of attention to memory",
    "unaligned_shapes": "Multiplying matrices of unaligned sizes",
    "wave_quantization": "Waiting for the last blocks of kernels",
    "low_occupancy": "Filling little of the device with kernels",
    "tiny_products": "Multiplying matrices too small for the device",
    "pointwise_chains": "Writing and reading again between pointwise kernels",
    "recomputation": "Running parts of the forward pass again",
    "start_up": "Starting up",
    "slow_steps": "Extra time in unusually long steps",
    "unrecorded_idle": "Idle time without a recorded cause",
    "devices_in_turn": "Working on several devices in turn",
    "host_loading": "Time in the data loader",
    "host_straggler": "Waiting for a late rank",
    "host_collectives": "Waiting for collectives of the hosts",
    "host_outside": "Time outside of operators",
    "host_optimizer": "Updating parameters one by one",
    "no_work_due": "Time without any device work, at an end of the recording,",
}
_ABOUT_THE_RECORDING = {
    "several_jobs": "These recordings are not the ranks of one job: nothing is compared.",
    "filtered": "Events were removed from this recording: where time goes cannot be told from it.",
    "fragment": "The recording holds one piece of device work: too little to tell where time goes.",
    "graph_capture": "A graph is being captured: what is launched does not run.",
}

_ABOUT_MEMORY = {
    "memory_leak": "memory leaks",
    "memory_full": "memory is nearly full",
    "memory_fragmentation": "memory is reserved in vain",
}

_NO_COST = {
    "compute_bound": "Computing",
    "host_operators": "Running operators on the host",
    "maybe_communication": "Work that may be communication",
    "earlier_work": "Work launched before the recording",
    "unread_files": "Files that could not be read",
    "queue_full": "A full launch queue",
    "not_judged": "Not known",
}
"""What is told but costs no time that a change could give back."""
_ASIDE = ("earlier_work", "queue_full", "unread_files")
"""Said of the recording and of its host: the sentence passes over it."""


def title(finding: pd.Series) -> str:
    """A row of `overview` in a few words, for a heading; `WORDS` and the others know every topic."""
    topic = finding["topic"]
    if topic == "not_judged" and MAIN_QUESTION in finding["text"]:
        return _NOT_TOLD
    told = WORDS | _NO_COST | _ABOUT_MEMORY | _ABOUT_THE_RECORDING
    words = told[topic].partition(":")[0].rstrip(",.")
    return f"{words[0].upper()}{words[1:]}"


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `overview` in one sentence."""
    of_memory = frame["section"] == MEMORY
    told = _of_time(frame[~of_memory])
    if not of_memory.any():
        return told
    return f"{told.removesuffix('.')}; {_ABOUT_MEMORY[frame.loc[of_memory, 'topic'].iloc[0]]}."


def _of_time(frame: pd.DataFrame) -> str:
    doubtful = frame["topic"] == "maybe_communication"
    told = _sentence(frame[~doubtful & ~frame["topic"].isin(_ASIDE)])
    if not doubtful.any() or frame.loc[doubtful, "share_pct"].iloc[0] < WARNING_PCT:
        return told
    share = percent(frame.loc[doubtful, "share_pct"].iloc[0])
    return f"{told.removesuffix('.')}; {share} may be communication that does not count as such."


def _sentence(frame: pd.DataFrame) -> str:
    if len(about := frame[frame["section"] == RECORDING]):
        return _ABOUT_THE_RECORDING[about["topic"].iloc[0]]
    found = frame[~frame["severity"].isin((OPEN, VERDICT, CHECKED))]
    verdict = frame[frame["section"] == VERDICT]
    now = found[found["section"] != LATER]
    if len(verdict) and not now["severity"].eq("warning").any():
        takes = f"takes {percent(verdict['share_pct'].iloc[0])} of the time"
        on_host = verdict["topic"].iloc[0] == "host_operators"
        computing = f"Running operators on the host {takes}" if on_host else f"Computing {takes}"
        if now.empty:
            work = "operators" if on_host else "kernels"
            return f"{computing}: what takes longest are the {work} themselves."
        most = _cost(now.iloc[0])
        return f"{computing}; {most[0].lower()}{most[1:]}{_saving(now.iloc[0])}."
    if len(found):
        told = found if now.empty else now
        return f"{_first(told)}{_others(told)}."
    lacking = next((text for text in frame["text"] if MAIN_QUESTION in text), None)
    if lacking is not None:
        return f"{_NOT_TOLD}: {lacking[0].lower()}{lacking[1:].partition(': ')[0]}."
    idle = next((text for text in frame["text"] if IDLE_QUESTION in text), None)
    if idle is not None and frame.loc[frame["text"] == idle, "severity"].eq(OPEN).all():
        return f"Why devices are idle cannot be told: {idle[0].lower()}{idle[1:].partition(': ')[0]}."
    limit = f"no known cause takes {NOTE_PCT:g} % of the time or more"
    if frame["severity"].eq(OPEN).any():
        return f"Nothing stands out in what can be judged: {limit}."
    return f"Nothing stands out: {limit}."


def _first(found: pd.DataFrame) -> str:
    """The first finding: what it costs, and what a change saves."""
    first = found.iloc[0]
    if first["section"] == SAVES:
        return f"{_cost(first)} of the time{_saving(first, most=len(found) > 1)}"
    if first["section"] == LATER:
        return f"{_cost(first)} of the time, but without it nothing is saved now"
    most = len(found) > 1 and bool(first["share_pct"] == found["share_pct"].max())
    return f"{_cause(first)} costs {'most, ' * most}{percent(first['share_pct'])} of the time"


def _others(found: pd.DataFrame) -> str:
    """A larger cost whose saving is unknown, and how many more causes save something or may."""
    first, rest = found.iloc[0], found.iloc[1:]
    others = len(rest) - int(_same_rank(found))
    larger = rest[(rest["section"] == UNKNOWN) & (rest["share_pct"] > first["share_pct"])]
    said = ""
    if first["section"] == SAVES and len(larger):
        most = _cost(larger.iloc[0])
        said, others = f"; {most[0].lower()}{most[1:]}, how much of it can be saved is unknown", others - 1
    if others <= 0:
        return said
    return f"{said}; {counted(others, 'more cause')} {'stands' if others == 1 else 'stand'} out"


def _cost(finding: pd.Series) -> str:
    return f"{_cause(finding)} costs {percent(finding['share_pct'])}"


def _cause(finding: pd.Series) -> str:
    """What it is, and in which iteration a rank is late, if that is one of many."""
    words = WORDS[finding["topic"]]
    once = finding["topic"] == "straggler" and pd.notna(finding["iteration"])
    return f"{words} in iteration {finding['iteration']}" if once else words


def _saving(finding: pd.Series, most: bool = False) -> str:
    """`; without it, at most 20.1 % is saved`, more than by other changes; empty where that is not known."""
    if finding["section"] != SAVES:
        return ""
    at_most = "" if finding["method"] == "replay" else "at most "
    share = f"{at_most}{percent(finding['saving_pct'])}"
    other = ", more than by any other change" * most
    if finding["saving_pct"] <= _BEYOND * finding["share_pct"]:
        return f"; without it, {share} is saved{other}"
    if OWN_COST in finding["saving"]:  # of a rank on which it costs more than on average
        return f"; without it, {share} is saved on rank {finding['saving_rank']}{other}"
    return f"; the change against it saves {share}{other}"


def _same_rank(found: pd.DataFrame) -> bool:
    """Whether a rank that the others wait for is told twice: that they wait, and why it is late."""
    reasons = found.loc[found["topic"].isin(("slow_kernels", "imbalance")), "rank"]
    return bool(reasons.isin(found.loc[found["topic"] == "straggler", "rank"]).any())
