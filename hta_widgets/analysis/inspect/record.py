"""What is known about an event, as plain values that can be printed, compared and written as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from hta_widgets.analysis.core.libraries import LIBRARY


@dataclass(frozen=True)
class EventRef:
    """An event that another one refers to: `inspect_event(trace, ref.rank, ref.event_id)` tells more."""

    # which it is
    rank: int
    event_id: int
    name: str
    event_class: str  # its `EventClass` label
    lane: str  # where it ran, such as ``device 0 stream 7`` or ``thread 21587``
    # on the job's axis, ns
    start_ns: int
    dur_ns: int


@dataclass(frozen=True)
class Several:
    """Some events: how many, their time added up (ns), and the first of them by start."""

    count: int = 0
    time_ns: int = 0
    first: tuple[EventRef, ...] = ()


@dataclass(frozen=True)
class Argument:
    """A recorded argument: its name in the file, its value, and the unit of that, "" for none."""

    name: str
    value: Any
    unit: str


@dataclass(frozen=True)
class Launch:
    """How a piece of device work was launched."""

    call: EventRef  # the host call
    # from the call's start to the work's; it is queued_ns (earlier work of the stream still ran) and
    # overhead_ns
    latency_ns: int
    queued_ns: int
    overhead_ns: int
    delay_ns: int  # from the call's end; negative if the work started before that
    siblings: Several  # other work that the same call launched, as a graph launches many


@dataclass(frozen=True)
class Frame:
    """A Python function that was open."""

    text: str  # as recorded
    # read from it; line is where the function begins, 0 if it does not say
    file: str
    line: int
    function: str
    event: EventRef | None  # the recorded call; None where an operator only carries the text of its stack

    @property
    def is_own(self) -> bool:
        """It is code of the user's: of a file that belongs to no package and not to Python itself."""
        return self.line > 0 and not LIBRARY.search(self.file)


@dataclass(frozen=True)
class Peer:
    """The same collective, or the other end of a message, on another rank."""

    event: EventRef  # the kernel there
    later_ns: int  # by how much it started later (ns)
    match_key: str  # how it is known, as `collectives` says


@dataclass(frozen=True)
class SameName:
    """All events of a name and class on a rank, and one's place among them. Times in ns."""

    # how many, and their time added up
    count: int
    time_ns: int
    # of their durations; between two events lies their mean, rounded to the even
    shortest_ns: int
    quartile_ns: int
    median_ns: int
    upper_quartile_ns: int
    longest_ns: int
    # how many take less, and how many take more, than the event
    shorter: int
    longer: int
    # a histogram: bins [edges[i], edges[i + 1]), wider and wider
    edges_ns: tuple[int, ...]
    counts: tuple[int, ...]
    # of the name, by start
    previous: EventRef | None
    next: EventRef | None
    longest: EventRef  # the first of the longest


@dataclass(frozen=True)
class Roof:
    """How far a call of an operator is from what its device could do: the row of `roofline` for that call.

    Attributes:
        operator: the call that the formula describes. kernels, device_ns: the device work in it.
        flops, bytes: operations, and traffic that it cannot do without. bounded: they are only bounds.
        tflops_s, gb_s, flops_per_byte: over its device work. bound: "compute" or "memory".
        efficiency_pct: % of its time that it would take at the lower ceiling.
        unit: what multiplies, by the longest kernel's name. peak_tflops_s, peak_gb_s: the two ceilings.
        device, source: whose they are, and who states them. None: unknown.
    """

    operator: EventRef
    kernels: int
    device_ns: int
    flops: float | None
    bytes: float | None
    bounded: bool
    tflops_s: float | None
    gb_s: float | None
    flops_per_byte: float | None
    bound: str | None
    efficiency_pct: float | None
    unit: str | None
    peak_tflops_s: float | None
    peak_gb_s: float | None
    device: str | None
    source: str | None


@dataclass(frozen=True)
class Role:
    """Which part of the model a piece of device work of a server's step is, as `roles` says.

    Attributes:
        role, known_by: the columns of `roles`. layer: None outside of layers.
        operator: what launched it when its graph was captured. module: what launched it then, or annotates
            it. "": unknown.
    """

    role: str
    layer: int | None
    known_by: str
    operator: str
    module: str


@dataclass(frozen=True)
class Replayed:
    """The time of something as recorded and replayed, ns: the estimate between the least and the most."""

    before_ns: int
    low_ns: int
    after_ns: int
    high_ns: int


@dataclass(frozen=True)
class Gone:
    """What the recording, and the event's iteration, would take if the event took no time.

    Device work then takes 0 ns where it ran, a host call leaves its thread; all else happens as soon as what
    it waits for has happened. Other ranks stay as they were. iteration: None where it is not complete.
    """

    recording: Replayed
    iteration: Replayed | None


@dataclass(frozen=True)
class EventFacts:
    """All that is known about an event; see `inspect_event`."""

    event: EventRef
    category: str
    process: str
    thread: str
    device: int | None
    stream: int | None
    end_ns: int
    self_ns: int
    iteration: int | None
    phase: str
    parts: dict[str, Any]
    arguments: tuple[Argument, ...]
    launch: Launch | None
    launched: Several
    operator: EventRef | None
    module: EventRef | None
    role: Role | None
    python: tuple[Frame, ...]
    python_of: EventRef | None
    parents: tuple[EventRef, ...]
    children: Several
    previous: EventRef | None
    next: EventRef | None
    forward: EventRef | None
    backward: Several
    peers: tuple[Peer, ...]
    same_name: SameName
    roofline: Roof | None
    gone: Gone | None
    missing: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The same as dicts, lists and plain values, for `json.dumps`."""
        return asdict(self)
