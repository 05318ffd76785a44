"""`MemorySnapshot`: what `torch.cuda.memory._dump_snapshot` wrote, as answers."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from hta_widgets.errors import (
    ForeignFileError,
    MissingDataError,
    TraceFormatError,
    TraceNotFoundError,
    out_of_memory,
)
from hta_widgets.formatting import byte_size, counted
from hta_widgets.memory_snapshot.history import History, gaps_between, history_of
from hta_widgets.memory_snapshot.owners import By, owner_names
from hta_widgets.memory_snapshot.pickles import PickleError, plain_values
from hta_widgets.memory_snapshot.tables import NULL, Tables, tables_of
from hta_widgets.trace.model import Trace
from hta_widgets.trace.reader.expansion import check_expansion, most_expansion
from hta_widgets.trace.reader.source import Source

RECORD: Final = "Call torch.cuda.memory._record_memory_history(max_entries=...) before the run."
_AT_ONCE: Final = 16 << 20


class MemorySnapshot:
    """A memory snapshot of PyTorch. Made by `MemorySnapshot.open`.

    Attributes:
        path: the file.
        segments: what the allocator has from the device: device, address, total_bytes, stream (int64), pool
            (str: "large" or "small"), is_expandable (bool), stack (int64).
        blocks: the pieces of segments: segment, device, address, bytes, requested_bytes (int64), state (str:
            "active_allocated", "active_awaiting_free" or "inactive"), stack (int64), annotation (str).
        events: what the allocator did before: device (int64), action (str), address, bytes, stream, time_us,
            device_free_bytes, stack (int64), annotation (str). Numbers that are not recorded are the least
            int64.
        stacks: the stacks that the column `stack` numbers, innermost frame first; -1 where none was recorded.
        settings: the allocator's settings.
    """

    def __init__(self, path: str, tables: Tables) -> None:
        self.path = path
        self.segments, self.blocks, self.events = tables.segments, tables.blocks, tables.events
        self.stacks, self.settings = tables.stacks, tables.settings

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> MemorySnapshot:
        """Read a snapshot, plain or gzip. Nothing in the pickle is ever run.

        Raises:
            TraceNotFoundError: there is no file.
            ForeignFileError: it is a pickle of something else.
            TraceFormatError: it is no pickle, is damaged, or holds more than plain data.
            OutOfMemoryError: the memory is too small for it.
        """
        name = os.fspath(path)
        with out_of_memory(f"reading {name}"):
            data = _bytes_of(Path(name))
            if data[:1].tobytes() != b"\x80":
                reason = "no pickle of PyTorch: torch.cuda.memory._dump_snapshot(path) writes one"
                raise TraceFormatError(name, reason, 0)
            try:
                graph = plain_values(data)
            except PickleError as error:
                raise TraceFormatError(name, error.reason, error.offset) from None
            tables = tables_of(graph)
        if tables is None:
            raise ForeignFileError(name, "a pickle, but not a memory snapshot: it has no segments", None)
        return cls(name, tables)

    def __repr__(self) -> str:
        return (
            f"MemorySnapshot({self.path!r}, devices={self.devices}, segments={len(self.segments)}, "
            f"blocks={len(self.blocks)}, events={len(self.events)})"
        )

    @cached_property
    def devices(self) -> list[int]:
        """The devices that have segments or events."""
        return sorted({*self.segments["device"].tolist(), *self.events["device"].tolist()})

    def summary(self) -> pd.DataFrame:
        """How much each device holds at the end, and held at most.

        Returns columns device, reserved_bytes, allocated_bytes (blocks in use), requested_bytes (what the
        program requested; the difference is rounding), awaiting_bytes (freed, but used by a stream) and
        peak_bytes (int64; the most requested at once while events were recorded, as `peak`; -1: no events).
        """
        return pd.DataFrame([self._summary_of(device) for device in self.devices], columns=_SUMMARY)

    def _summary_of(self, device: int) -> dict[str, int]:
        blocks = self.blocks[self.blocks["device"] == device]
        allocated = blocks[blocks["state"] == "active_allocated"]
        waiting = blocks[blocks["state"] == "active_awaiting_free"]
        has_events = bool((self.events["device"] == device).any())
        history = self._history(device) if has_events else None
        return {
            "device": device,
            "reserved_bytes": int(self.segments.loc[self.segments["device"] == device, "total_bytes"].sum()),
            "allocated_bytes": int(allocated["bytes"].sum()),
            "requested_bytes": int(allocated["requested_bytes"].sum()),
            "awaiting_bytes": int(waiting["bytes"].sum()),
            "peak_bytes": -1 if history is None else int(history.allocated[history.peak]),
        }

    def timeline(self, device: int | None = None) -> pd.DataFrame:
        """What was allocated and reserved after each event.

        Returns columns device, event (position among the device's events; -1: before the first), time_us (of
        the event, the least int64 where not recorded), allocated_bytes (as requested) and reserved_bytes
        (int64).

        Raises:
            MissingDataError: no events were recorded.
            ValueError: there is no such device.
        """
        frames = []
        for number in self._chosen(device):
            history = self._history(number)
            time = history.events["time_us"].to_numpy()
            n = len(history.allocated)
            frames.append(
                pd.DataFrame(
                    {
                        "device": np.full(n, number),
                        "event": np.arange(-1, n - 1),
                        "time_us": np.append(time[:1], time) if n > 1 else np.full(1, NULL),
                        "allocated_bytes": history.allocated,
                        "reserved_bytes": history.reserved,
                    }
                )
            )
        return pd.concat(frames, ignore_index=True)

    def peak(self, device: int | None = None, by: By = "line") -> pd.DataFrame:
        """Who owned the memory when most was allocated.

        Args:
            device: default: all, each at its own peak.
            by: "line" (the innermost line of code that is not PyTorch's), "module" (its file), "stack", or
                "annotation" (of torch.cuda.memory._set_memory_metadata, else the range of
                torch.profiler.record_function that was entered last).

        Returns columns device (int64), owner (str), bytes (as requested), count (int64) and pct (float64, of
        the peak), the largest first. What was allocated before the events begin and freed before the end has
        no stack; what is not known to be anybody's is the owner "unknown".

        Raises:
            MissingDataError: no events were recorded.
            ValueError: there is no such device.
        """
        frames = []
        for number in self._chosen(device):
            history = self._history(number)
            position = history.peak
            frames.append(self._owned(number, history.alive(position), int(history.allocated[position]), by))
        return pd.concat(frames, ignore_index=True)

    def owners(self, device: int | None = None, by: By = "line") -> pd.DataFrame:
        """Who owns the memory at the end; the columns are those of `peak`.

        Raises:
            ValueError: there is no such device.
        """
        frames = []
        for number in self._devices(device):
            blocks = self.blocks[
                (self.blocks["device"] == number) & (self.blocks["state"] == "active_allocated")
            ]
            live = blocks.assign(bytes=blocks["requested_bytes"])
            frames.append(self._owned(number, live, int(live["bytes"].sum()), by))
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=_OWNERS)

    def _owned(self, device: int, rows: pd.DataFrame, total: int, by: By) -> pd.DataFrame:
        owner = owner_names(rows, self.stacks, by)
        grouped = rows["bytes"].groupby(owner.to_numpy()).agg(["sum", "count"])
        frame = pd.DataFrame(
            {
                "owner": grouped.index.astype("str"),
                "bytes": grouped["sum"].to_numpy(),
                "count": grouped["count"].to_numpy(),
            }
        )
        rest = total - int(frame["bytes"].sum())
        if rest > 0:
            unknown = pd.DataFrame({"owner": ["unknown"], "bytes": [rest], "count": [0]})
            frame = pd.concat([frame, unknown], ignore_index=True)
        frame = frame.sort_values(["bytes", "owner"], ascending=[False, True], ignore_index=True)
        frame.insert(0, "device", device)
        frame["pct"] = 100.0 * frame["bytes"] / max(1, total)
        return frame.astype({"bytes": "int64", "count": "int64"})

    def fragmentation(self) -> pd.DataFrame:
        """How much of what each device reserved is free, and in which pieces.

        Returns columns device, reserved_bytes, free_bytes (in blocks not in use), largest_free_bytes,
        releasable_bytes (in segments without a block in use), stuck_bytes (free in the other segments: it can
        be used again, but not be given back) and rounding_bytes (in use, but not requested), int64.
        """
        rows = []
        for device in self.devices:
            blocks = self.blocks[self.blocks["device"] == device]
            free = blocks[blocks["state"] == "inactive"]
            used = blocks[blocks["state"] == "active_allocated"]
            held = set(blocks.loc[blocks["state"] != "inactive", "segment"].tolist())
            releasable = free.loc[~free["segment"].isin(held), "bytes"]
            total = int(free["bytes"].sum())
            rows.append(
                {
                    "device": device,
                    "reserved_bytes": int(
                        self.segments.loc[self.segments["device"] == device, "total_bytes"].sum()
                    ),
                    "free_bytes": total,
                    "largest_free_bytes": int(free["bytes"].max()) if len(free) else 0,
                    "releasable_bytes": int(releasable.sum()),
                    "stuck_bytes": total - int(releasable.sum()),
                    "rounding_bytes": int((used["bytes"] - used["requested_bytes"]).sum()),
                }
            )
        return pd.DataFrame(rows, columns=_FRAGMENTATION)

    def blockers(self, device: int | None = None) -> pd.DataFrame:
        """Which blocks keep segments from being given back, those that keep most for least first.

        Returns columns device, segment, free_bytes (in the segment), held_bytes and count (its blocks in use)
        (int64) and owner (str, the line of code of the largest of these).

        Raises:
            ValueError: there is no such device.
        """
        blocks = self.blocks[self.blocks["device"].isin(self._devices(device))]
        used = blocks[blocks["state"] != "inactive"]
        free = blocks[blocks["state"] == "inactive"].groupby("segment")["bytes"].sum()
        held = used.groupby("segment")["bytes"].agg(["sum", "count"])
        largest = used.sort_values("bytes").groupby("segment").tail(1).set_index("segment")
        found = held.join(free.rename("free"), how="inner")
        frame = pd.DataFrame(
            {
                "device": self.segments["device"].to_numpy()[found.index.to_numpy(dtype="int64")],
                "segment": found.index.to_numpy(dtype="int64"),
                "free_bytes": found["free"].to_numpy(),
                "held_bytes": found["sum"].to_numpy(),
                "count": found["count"].to_numpy(),
                "owner": owner_names(largest.loc[found.index], self.stacks, "line").to_numpy(),
            }
        )
        return frame.sort_values(["free_bytes", "held_bytes"], ascending=[False, True], ignore_index=True)

    def out_of_memory(self) -> pd.DataFrame:
        """Why allocations failed.

        Returns one row per failure: device, event, requested_bytes, device_free_bytes (not reserved by this
        process), reserved_bytes, allocated_bytes (as requested), free_bytes (reserved, but not in use) and
        largest_free_bytes (int64), cause (str) and owner (str, the largest one then). The cause is
        "fragmentation" where what is free on the device and in segments would do if it were in one piece,
        "capacity" where all of it is too little, "unknown" where the device's free memory is not recorded.
        Free pieces are those between the allocations that are known then, so they are upper bounds.
        """
        rows = []
        for device in self.devices:
            if not (self.events["device"] == device).any():
                continue
            history = self._history(device)
            final = self.segments[self.segments["device"] == device]
            for at in np.flatnonzero(history.events["action"] == "oom").tolist():
                event = history.events.iloc[at]
                live = history.alive(at)
                places = history.segments(at, final)
                _, free = gaps_between(live["address"].to_numpy(), live["bytes"].to_numpy(), *places)
                rows.append(self._failure(device, at, event, history, live, free))
        return pd.DataFrame(rows, columns=_FAILURES)

    def _failure(
        self, device: int, at: int, event: Any, history: History, live: pd.DataFrame, free: Any
    ) -> dict[str, Any]:
        requested, left = int(event["bytes"]), int(event["device_free_bytes"])
        inside = int(free.sum())
        cause = "fragmentation" if requested <= inside + left else "capacity"
        if left == NULL:
            cause = "unknown"
        owned = self._owned(device, live, int(live["bytes"].sum()), "line")
        return {
            "device": device,
            "event": at,
            "requested_bytes": requested,
            "device_free_bytes": left,
            "reserved_bytes": int(history.reserved[at]),
            "allocated_bytes": int(history.allocated[at]),
            "free_bytes": inside,
            "largest_free_bytes": int(free.max()) if len(free) else 0,
            "cause": cause,
            "owner": owned["owner"].iloc[0] if len(owned) else "",
        }

    def peak_in(self, trace: Trace, rank: int | None = None) -> pd.DataFrame:
        """What ran when most was allocated, by a recording of the same run?

        Both state times since the epoch; the snapshot's are whole microseconds. The host requests memory
        before the device uses it, so `device_work` is that of earlier operators.

        Args:
            trace: the recording, in which the profiler and the allocator's history ran at the same time.
            rank: the rank that the snapshot is of; default: the only one that works on the device.

        Returns one row per device: rank, device, peak_ns (on the trace's axis), peak_bytes (the most
        requested while the recording ran), overall_bytes (in the whole history) (int64), iteration (Int64),
        operator and device_work (str: the host's innermost operator and the device's work then, "" for none).

        Raises:
            MissingDataError: no events were recorded, or snapshot and recording have no time in common.
            ValueError: there is no such rank.
        """
        from hta_widgets.memory_snapshot.beside import peak_in

        if rank is not None and rank not in trace.ranks:
            raise ValueError(f"no rank {rank}; the trace has: {', '.join(map(str, trace.ranks))}")
        return peak_in(trace, {number: self._history(number) for number in self._chosen(None)}, rank)

    def sentence(self) -> str:
        """The answer in one or two sentences: why memory ran out, else the peak and what is free."""
        failures = self.out_of_memory()
        if len(failures):
            last = failures.iloc[-1]
            requested = byte_size(last["requested_bytes"])
            if last["cause"] == "fragmentation":
                return (
                    f"Out of memory on device {last['device']} because of fragmentation: {requested} were "
                    f"requested, {byte_size(last['free_bytes'])} were free in segments, at most "
                    f"{byte_size(last['largest_free_bytes'])} in one piece. Try "
                    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
                )
            if last["cause"] == "capacity":
                return (
                    f"Out of memory on device {last['device']}: {requested} were requested, and "
                    f"{byte_size(last['allocated_bytes'])} were allocated, most of it at {last['owner']}."
                )
            return (
                f"Out of memory on device {last['device']}: {requested} were requested; the cause is unknown."
            )
        table = self.summary()
        if not len(table):
            return "The snapshot holds no memory."
        top = table.sort_values("reserved_bytes", ascending=False).iloc[0]
        text = (
            f"Device {top['device']} holds {byte_size(top['allocated_bytes'])} of "
            f"{byte_size(top['reserved_bytes'])} reserved."
        )
        if top["peak_bytes"] >= 0:
            text += f" At its peak {byte_size(top['peak_bytes'])} were requested."
        else:
            text += f" Its history was not recorded ({counted(len(self.blocks), 'block')})."
        return text

    # ---- within

    @cached_property
    def _histories(self) -> dict[int, History]:
        return {}

    def _history(self, device: int) -> History:
        if device not in self._histories:
            events = self.events[self.events["device"] == device]
            if not len(events):
                raise MissingDataError("allocator history", RECORD, "the snapshot has no device_traces")
            self._histories[device] = history_of(
                events,
                self.blocks[self.blocks["device"] == device],
                self.segments[self.segments["device"] == device],
            )
        return self._histories[device]

    def _devices(self, device: int | None) -> list[int]:
        if device is not None and device not in self.devices:
            raise ValueError(f"no device {device}; this snapshot has: {', '.join(map(str, self.devices))}")
        return self.devices if device is None else [device]

    def _chosen(self, device: int | None) -> list[int]:
        """Devices with a history."""
        chosen = self._devices(device)
        recorded = set(self.events["device"].tolist())
        if device is None:
            chosen = [number for number in chosen if number in recorded] or chosen
        if not chosen:
            raise MissingDataError("allocator history", RECORD, "the snapshot has no device_traces")
        return chosen


_SUMMARY: Final = [
    "device",
    "reserved_bytes",
    "allocated_bytes",
    "requested_bytes",
    "awaiting_bytes",
    "peak_bytes",
]
_OWNERS: Final = ["device", "owner", "bytes", "count", "pct"]
_FRAGMENTATION: Final = [
    "device", "reserved_bytes", "free_bytes", "largest_free_bytes", "releasable_bytes", "stuck_bytes",
    "rounding_bytes",
]  # fmt: skip
_FAILURES: Final = [
    "device", "event", "requested_bytes", "device_free_bytes", "reserved_bytes", "allocated_bytes",
    "free_bytes", "largest_free_bytes", "cause", "owner",
]  # fmt: skip


def _bytes_of(path: Path) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of a file, unpacked."""
    try:
        data = np.fromfile(path, np.uint8)
    except FileNotFoundError as error:
        raise TraceNotFoundError(f"{path}: no such file") from error
    except IsADirectoryError as error:
        raise TraceFormatError(path, "is a folder, not a file") from error
    if data[:2].tobytes() != b"\x1f\x8b":
        return data
    pieces, size, most = [], 0, most_expansion()
    with Source(path) as source:
        while count := source.read_into(memoryview(piece := bytearray(_AT_ONCE))):
            pieces.append(np.frombuffer(piece, np.uint8)[:count])
            size += count
            check_expansion(source.path, source.done, size, 0, most)
        if source.damage is not None:
            raise TraceFormatError(path, source.damage)
    return np.concatenate(pieces) if pieces else np.empty(0, np.uint8)
