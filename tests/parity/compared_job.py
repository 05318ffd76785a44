"""What a difference is judged by: both packages' answers, the recorded events, HTA's defects redone."""

from __future__ import annotations

import gzip
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.parity import observe
from tests.parity.compare import Difference
from tests.parity.hta_defects import HTA_DEFECTS, Events, correlation, is_call
from tests.parity.patches import PATCHES

Compared = Callable[[str, dict[str, Any], dict[str, Any]], Iterable[Difference]]


class ComparedJob:
    """One job: `hta` and `ours` are the answers by question."""

    def __init__(
        self,
        request: dict[str, Any],
        hta: dict[str, Any],
        ours: dict[str, Any],
        compared: Compared,
        scratch: Path,
    ) -> None:
        self.request, self.hta, self.ours = request, hta, ours
        self._compared, self._scratch = compared, scratch
        self._left: dict[tuple[str, ...], set[tuple[Any, ...]]] = {}
        self.redone: Mapping[tuple[str, ...], set[str]] = {}  # what to ask again, by the defects redone

    @cached_property
    def files(self) -> dict[str, str]:
        found: dict[str, str] = self.request.get("files") or dict(
            zip("01", self.request["pair"], strict=True)
        )
        return found

    @cached_property
    def events(self) -> Events:
        """Of the first rank, by index."""
        return self.events_of(min(self.files, key=int))

    def events_of(self, rank: str) -> Events:
        """By index."""
        events: Events = _document(self.files[rank])["traceEvents"]
        return events

    @cached_property
    def host_steps(self) -> Events:
        return steps(self.events)

    @cached_property
    def calls(self) -> dict[Any, set[str]]:
        """Correlation id -> names of the host calls that carry it."""
        names: dict[Any, set[str]] = {}
        for event in self.events:
            if is_call(event) and correlation(event) is not None:
                names.setdefault(correlation(event), set()).add(event["name"])
        return names

    @cached_property
    def points(self) -> Counter[tuple[str, Any, float]]:
        """(question, stream or name, time) -> how many points HTA lists there."""
        points: Counter[tuple[str, Any, float]] = Counter()
        for question, owner in (("queue_series", "stream"), ("bandwidth_series", "name")):
            for frame in self.hta[question]["answer"].values():
                columns = dict(zip(frame["columns"], frame["data"], strict=True))
                points.update((question, *at) for at in zip(columns[owner], columns["ts"], strict=True))
        return points

    @cached_property
    def steps_are_nan(self) -> bool:
        return any(map(is_nan, self.column(self.hta, "trace_frame", "iteration")))

    def event(self, difference: Difference) -> dict[str, Any]:
        """The recorded event that a row with an index is about."""
        return self.events[int(difference.key[0])]

    def args(self, difference: Difference) -> dict[str, Any]:
        return self.event(difference).get("args") or {}

    def column(self, side: dict[str, Any], question: str, name: str) -> list[Any]:
        frame = side[question]["answer"]
        found: list[Any] = frame["data"][frame["columns"].index(name)]
        return found

    def is_gone(self, difference: Difference, defects: tuple[str, ...]) -> bool:
        """With these defects redone our answer is HTA's about the original, as to this difference."""
        if defects not in self._left:
            self._left[defects] = self._redo(defects)
        return difference.identity not in self._left[defects]

    def _redo(self, defects: tuple[str, ...]) -> set[tuple[Any, ...]]:
        copies = {}
        for rank, path in self.files.items():
            document = _document(path)
            for defect in defects:
                if defect in HTA_DEFECTS:
                    HTA_DEFECTS[defect](document["traceEvents"])
            copy = self._scratch / f"redone-{rank}.json"
            copy.write_text(json.dumps(document), encoding="utf-8")
            copies[rank] = str(copy)
        skip = [name for name in observe.QUESTIONS if name not in self.redone[defects]]
        files = {"pair": list(copies.values())} if "pair" in self.request else {"files": copies}
        with ExitStack() as faulty:
            for defect in defects:
                if defect not in HTA_DEFECTS:
                    faulty.enter_context(PATCHES[defect]())
            again = observe.observe("hta_widgets.hta", {**self.request, **files, "skip": skip})
        for question, answer in again.items():
            # An answer that is lost proves nothing.
            assert ("answer" in answer) == ("answer" in self.ours[question]), (defects, question, answer)
            if self.hta[question].get("answer") is not None:
                assert answer.get("answer") is not None, (defects, question)
        return {
            item.identity
            for question in again
            if question in self.hta
            for item in self._compared(question, self.hta[question], again[question])
        }


def steps(events: Events) -> Events:
    """Of the host, in file order."""
    return [
        event
        for event in events
        if event.get("cat") == "user_annotation" and str(event["name"]).startswith("ProfilerStep")
    ]


def is_nan(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _document(path: str) -> dict[str, Any]:
    raw = Path(path).read_bytes()
    document: dict[str, Any] = json.loads(gzip.decompress(raw) if raw[:2] == observe.GZIP else raw)
    return document
