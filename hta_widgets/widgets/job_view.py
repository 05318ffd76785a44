"""The job: every rank at its place, what it does, whom it holds up, and what it costs all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import pandas as pd
import traitlets as t

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.story import story
from hta_widgets.analysis.job.panel import sentence
from hta_widgets.analysis.job.parts import job_iterations
from hta_widgets.analysis.job.ranks import rank_costs, rank_parts
from hta_widgets.analysis.parallelism.coordinates import IN_WORDS, SCOPES
from hta_widgets.charts.svg import PanelPicture
from hta_widgets.engine import UI_LOCK, Latest
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import capitalised, duration
from hta_widgets.report import write
from hta_widgets.short_paths import Paths, paths_as
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.answer_cache import cached_analysis
from hta_widgets.widgets.computed import Computed
from hta_widgets.widgets.job_codec import packed_cells, packed_pairs
from hta_widgets.widgets.notable_ranks import notable_ranks
from hta_widgets.widgets.part import describe, variable_name
from hta_widgets.widgets.reporting import own_page
from hta_widgets.widgets.rpc import rpc_method
from hta_widgets.widgets.runtime import JOB_BUNDLE
from hta_widgets.widgets.selection import Integers, Selection
from hta_widgets.widgets.table_codec import Table, encode

Picture = Literal["ranks", "iterations", "waits", "slowdown"]


class _Parts(NamedTuple):
    """What takes no replay."""

    scope: Scope
    ranks: pd.DataFrame
    iterations: pd.DataFrame
    waits: pd.DataFrame
    notable: list[dict[str, Any]]


class _Costs(NamedTuple):
    """What the replay adds; `missing` is why there is none."""

    ranks: pd.DataFrame
    notable: list[dict[str, Any]]
    sentence: str
    note: str
    missing: str


class JobView(Computed):
    """All ranks of a job: a grid by stage and replica, rank by iteration, and who waits for whom.

    What a rank costs the job is replayed, which takes longer than the rest and follows it. Above all stands
    what the whole job could save, as in `TraceExplorer`; in one, the explorer has it.

    Args:
        trace: an open `Trace`, or anything `Trace.open` takes.
        selection: the `Selection` to share with other parts. All ranks are shown whichever are selected, of
            the selected iterations; rank by iteration shows all of these, too.
        python_expression: returns the Python expression of the frame of a panel of an explorer.

    >>> view = JobView("run_17/")                                     # doctest: +SKIP
    >>> view.frame("waits")                                           # doctest: +SKIP
    """

    _bundle: ClassVar = JOB_BUNDLE
    _view = t.Unicode("job").tag(sync=True)
    _depends: ClassVar = ("iterations",)

    ranks = Integers(help="selected ranks; () means all").tag(sync=True)
    iterations = Integers(help="selected iterations; () means all").tag(sync=True)
    table = Table(help="`analysis.job_ranks`").tag(sync=True)
    labels: t.List[str] = t.List(t.Unicode(), help="names of the ranks of `table`").tag(sync=True)
    notable: t.List[Any] = t.List(
        help="ranks to look at first: [{rank, why, evidence}], as `notable_ranks` has them"
    ).tag(sync=True)
    sentence = t.Unicode(help="what stragglers cost and who they are; empty until it is known").tag(sync=True)
    note = t.Unicode(help="what a stage costs that is the culprit, beside its ranks").tag(sync=True)
    costs = t.Enum(("busy", "known", "missing"), "busy", help="whether it is known what ranks cost").tag(
        sync=True
    )
    missing = t.Unicode(help="why it is not").tag(sync=True)
    story: t.Dict[str, Any] = t.Dict(help="as `Story.content`; {} in an explorer and until it is there").tag(
        sync=True
    )
    version = t.Int(help="counts the answers: what was sent of an older one is void").tag(sync=True)
    expression = t.Unicode(help="Python expression of the view's frame").tag(sync=True)

    _parts: _Parts | None = None

    def __init__(
        self,
        trace: Any,
        *,
        selection: Selection | dict[str, Any] | None = None,
        python_expression: Callable[[], str] | None = None,
    ) -> None:
        self._alone = python_expression is None
        self._python_expression = python_expression or (lambda: f"{variable_name(self, 'view')}.frame()")
        self._replay = Latest[_Costs](self._show_costs, self._fail)
        self._judgement = Latest[dict[str, Any]](self._show_story, self._fail)
        super().__init__(trace, selection=selection)

    def frame(self, picture: Picture = "ranks") -> pd.DataFrame:
        """The DataFrame behind a picture, of the selected iterations.

        Args:
            picture: "ranks": `analysis.job_ranks`; "iterations": `analysis.job_iterations`; "waits":
                `analysis.rank_waits`; "slowdown": `analysis.slowdown`.

        Raises:
            MissingDataError: ranks do not meet; of "slowdown", the replay does not explain the recording.
            ValueError: there is no such picture.
        """
        return job_frame(self.trace, self._question(), picture)

    def to_markdown(self) -> str:
        """The evidence about the selected iterations as Markdown, as `TraceExplorer.to_markdown` has it."""
        from hta_widgets.analysis.evidence.document import evidence
        from hta_widgets.analysis.evidence.markdown import markdown

        return markdown(evidence(self.trace, self._question()))

    def to_html(self, path: str | PathLike[str], *, title: str = "", paths: Paths = "short") -> Path:
        """Write what is shown to one HTML file that opens anywhere, offline and without Python.

        Args:
            path: the file to write; it is returned.
            title: the page's title.
            paths: "short" cuts paths to their last part, and home folders to `~`; "full" leaves them.

        Raises:
            OSError: the file cannot be written.
        """
        title = title or f"Job: {describe(self.trace)}"
        return write(path, own_page(self, "job", title, paths_as(paths)))

    def picture(self) -> PanelPicture:
        """What is shown as a panel of a static picture; the view must have settled."""
        with UI_LOCK:
            return PanelPicture("Job", self.sentence or self.missing or self.message)

    def close(self) -> None:
        """Close the part and stop work whose result nobody will see."""
        self._replay.close()
        self._judgement.close()
        super().close()

    def _question(self) -> Scope:
        return Scope(iterations=self.iterations or None)

    def _compute(self, question: Scope) -> _Parts:
        every = _iterations(self.trace)
        ranks = rank_parts(self.trace, question, _chosen(every, question))
        waits = cached_analysis(self.trace, "rank_waits", question)
        return _Parts(question, ranks, every, waits, notable_ranks(self.trace, question, ranks))

    def _deliver(self, result: Any) -> None:
        """The pictures are shown at once; the part stays busy until the replay has an answer, too."""
        trace = self.trace
        with UI_LOCK, self.hold_sync():
            self._parts, self.message = result, ""
            self.table, self.notable = encode(result.ranks), result.notable
            self.labels = [trace.rank(int(rank)).label for rank in result.ranks["rank"]]
            self.sentence, self.note, self.missing, self.costs = "", "", "", "busy"
            self.version += 1
            self.expression = self._python_expression()
        self._replay.submit(lambda: _costs(trace, result))

    def _refresh(self, _change: Any = None) -> None:
        self._replay.cancel()
        self._judgement.cancel()
        super()._refresh(_change)

    def _show_costs(self, found: _Costs) -> None:
        with UI_LOCK, self.hold_sync():
            self.table, self.notable = encode(found.ranks), found.notable
            self.sentence, self.note, self.missing = found.sentence, found.note, found.missing
            self.costs = "missing" if found.missing else "known"
            if self._alone and self._parts is not None:
                question = self._parts.scope
                self._judgement.submit(lambda: _story(self.trace, question))
            else:
                self._end()

    def _show_story(self, found: dict[str, Any]) -> None:
        with UI_LOCK, self.hold_sync():
            self.story = found
            self._end()

    def _end(self) -> None:
        if self.status == "busy":
            self.status = "idle"

    @rpc_method("cells")
    def _on_cells(self, _params: dict[str, Any]) -> tuple[dict[str, Any], Sequence[bytes]]:
        packed = packed_cells(self._ready().iterations)
        return {**packed.layout}, [packed.data]

    @rpc_method("pairs")
    def _on_pairs(self, _params: dict[str, Any]) -> tuple[dict[str, Any], Sequence[bytes]]:
        parts = self._ready()
        steps = int(parts.ranks["iterations"].max()) if len(parts.ranks) else 0
        packed = packed_pairs(parts.waits, parts.ranks["rank"].tolist(), steps)
        return {**packed.layout}, [packed.data]

    def _ready(self) -> _Parts:
        if self._parts is None:
            raise LookupError("the view is not ready")
        return self._parts


def job_frame(trace: Trace, scope: Scope, picture: str) -> pd.DataFrame:
    """`JobView.frame` of a trace and a scope."""
    if picture in ("waits", "slowdown"):
        kind = "rank_waits" if picture == "waits" else picture
        return cached_analysis(trace, kind, scope).copy()
    if picture == "iterations":
        return _chosen(_iterations(trace), scope).copy()
    if picture == "ranks":
        costs, _ = _slowdown(trace, scope)
        parts = rank_parts(trace, scope, _chosen(_iterations(trace), scope))
        return rank_costs(trace, scope, parts, costs)
    raise ValueError(f"there is no picture {picture!r}; the pictures are ranks, iterations, waits, slowdown")


@memoize_per_rank()
def _iterations(trace: Trace) -> pd.DataFrame:
    return job_iterations(trace)


def _chosen(iterations: pd.DataFrame, scope: Scope) -> pd.DataFrame:
    """Of `job_iterations`, those of a scope."""
    chosen = scope.iterations
    return iterations if chosen is None else iterations[iterations["iteration"].isin(chosen)]


def _slowdown(trace: Trace, scope: Scope) -> tuple[pd.DataFrame | None, str]:
    """`slowdown`, or why there is none."""
    try:
        return cached_analysis(trace, "slowdown", scope), ""
    except MissingDataError as error:
        text = str(error)
        return None, capitalised(text)


def _costs(trace: Trace, parts: _Parts) -> _Costs:
    costs, missing = _slowdown(trace, parts.scope)
    ranks = rank_costs(trace, parts.scope, parts.ranks, costs)
    notable = notable_ranks(trace, parts.scope, ranks)
    if costs is None:
        return _Costs(ranks, notable, "", "", missing)
    return _Costs(ranks, notable, sentence(costs), _of_place(costs, ranks), "")


def _story(trace: Trace, scope: Scope) -> dict[str, Any]:
    return story(trace, scope, cached_analysis(trace, "overview", scope)).as_dict()


def _of_place(costs: pd.DataFrame, ranks: pd.DataFrame) -> str:
    """What a stage costs that is the culprit, or another place of several ranks.

    Its ranks one by one cost less: each leaves the others slow.
    """
    places = costs[costs["scope"].isin(SCOPES) & costs["culprit"]]
    if places.empty:
        return ""
    scope, key = places["scope"].iloc[0], places["key"].iloc[0]
    cost = duration(places["cost_ns"].iloc[0])
    most = duration(ranks.loc[ranks["culprit"], "cost_ns"].max())
    who = f"{IN_WORDS.get(scope, scope)} {key}"
    return f"Repairing all of {who} wins {cost} per step, its ranks one by one {most} at most."
