"""The static picture of an explorer or a comparison, for notebooks read without a kernel."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from hta_widgets.analysis.compare.run_story import CLASSES
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.charts.spec import Stack, Waterfall
from hta_widgets.charts.svg import (
    Bar,
    Fall,
    FoundPicture,
    Overview,
    PanelPicture,
    Picture,
    Segment,
    Step,
    StoryPicture,
)
from hta_widgets.charts.waterfall_bars import waterfall_bars
from hta_widgets.formatting import duration
from hta_widgets.widgets.breakdown_panel import BreakdownPanel
from hta_widgets.widgets.comparison_panel import ComparisonPanel
from hta_widgets.widgets.job_view import JobView
from hta_widgets.widgets.part import Part
from hta_widgets.widgets.selection import Selection
from hta_widgets.widgets.static_preview import origin
from hta_widgets.widgets.story import Story
from hta_widgets.widgets.timeline_scrubber import TimelineScrubber
from hta_widgets.widgets.what_if import WhatIf

_CLASSES = (("Compute", "compute"), ("Communication", "communication"), ("Memory", "memory"))
_HOST = (("Host", "host"),)
_ALL = "the whole job"
_MOST = 5  # findings
_NAMES = {"memory": "copies", "host": "CPU"}  # of classes of time, as in js/src/story/story.ts
_LEAST = 0.005  # a smaller share of the bar has no number


def picture(title: str, header: Sequence[dict[str, str]], parts: Sequence[Part]) -> Picture:
    """The picture of parts that have settled.

    Args:
        title: what is shown.
        header: `[{label, value}]` of the header.
        parts: the parts of the explorer.
    """
    timelines = [part for part in parts if isinstance(part, TimelineScrubber) and part.status == "idle"]
    panels = [part for part in parts if isinstance(part, BreakdownPanel | JobView | WhatIf)]
    stories = [part for part in parts if isinstance(part, Story) and part.status == "idle"]
    return Picture(
        title=title,
        facts=[(field["label"], field["value"]) for field in header],
        selected=words(parts[0].selection),
        overview=_overview(timelines[0]) if timelines else None,
        answers=[_answer(panel) for panel in panels],
        origin=origin("explorer"),
        story=story_picture(stories[0].content) if stories else None,
    )


def story_picture(content: Mapping[str, Any]) -> StoryPicture | None:
    """A story (`Story.as_dict`) as the picture has it, with the segments of the bar on the screen."""
    if not content:
        return None
    whole = content["whole_ns"]
    segments = [
        Segment(
            share=part["ns"] / whole,
            form=part["form"],
            time_class=part["lost_as"],
            text=f"{_NAMES.get(part['lost_as'], part['lost_as'])} {duration(part['ns'])}",
            number=part["finding"] + 1 if part["ns"] >= _LEAST * whole else 0,
        )
        for part in content["parts"]
    ]
    findings = [
        FoundPicture(number, advice["noun"], advice["label"], advice["form"], advice["lost_as"])
        for number, advice in enumerate(content["advice"][:_MOST], 1)
    ]
    beside = [text for text in (content["limits"], content["trust"]) if text]
    return StoryPicture(
        content["scope"],
        content["headline"],
        beside,
        segments,
        content["saved"],
        content["remains"],
        findings,
    )


def compared_picture(
    runs: Sequence[dict[str, str]],
    selections: Mapping[str, Selection],
    panels: Sequence[ComparisonPanel],
    headline: str,
    story: Mapping[str, Any],
) -> Picture:
    """The picture of runs side by side, once their panels have settled.

    Args:
        runs: `[{name, detail}]`, the first is the base.
        panels: in the order in which they are shown.
        headline: the greatest change of a step; "" where there is none.
        story: what the steps consist of, as `RunsStory.content`; {} where they cannot be compared.
    """
    base, *others = (run["name"] for run in runs)
    selected = {run: words(selection) for run, selection in selections.items()}
    selections_text = (f"{text} of {run}" for run, text in selected.items() if text != _ALL)
    return Picture(
        title=headline or f"{', '.join(others)} compared with {base}",
        facts=[(f"{_letter(at)} · {run['detail']}", run["name"]) for at, run in enumerate(runs)],
        selected="; ".join(selections_text) or "the whole of each run",
        overview=None,
        answers=[*_steps(story), *(_difference(panel) for panel in panels)],
        origin=origin("viewer"),
    )


def words(selection: Selection) -> str:
    """A selection in words.

    >>> words(Selection(ranks=[0, 1], window=(1_000_000, 3_000_000)))
    'ranks 0, 1; 2.00 ms from 1.00 ms'
    """
    clauses = []
    for name in ("ranks", "iterations", "streams"):
        values = getattr(selection, name)
        if values:
            clauses.append(f"{name} {', '.join(map(str, values))}")
    if selection.window is not None:
        start, end = selection.window
        clauses.append(f"{duration(end - start)} from {duration(start)}")
    if selection.names:
        clauses.append(f"names {', '.join(selection.names)}")
    if selection.query.strip():
        clauses.append(f"search “{selection.query.strip()}”")
    return "; ".join(clauses) or _ALL


def _steps(story: Mapping[str, Any]) -> list[PanelPicture]:
    """A bar for the mean step of each run, on one scale."""
    if not story:
        return []
    bars = [
        Bar(_letter(at), _by_class(run["pieces"]), duration(run["ns"]))
        for at, run in enumerate(story["runs"])
    ]
    return [PanelPicture("Mean step of each run", story["cause"], bars=bars)]


def _letter(run: int) -> str:
    """What a run is called where its name is too long, as in js/src/runs.tsx."""
    return chr(ord("A") + run % 26)


def _by_class(pieces: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, float]]:
    spent = dict.fromkeys(CLASSES, 0)
    for piece in pieces:
        spent[piece["lost_as"]] += piece["ns"]
    return [(_NAMES.get(name, name), name, float(ns)) for name, ns in spent.items()]


def _difference(panel: ComparisonPanel) -> PanelPicture:
    if panel.status != "idle":
        return PanelPicture(panel.title, panel.message)
    chart = panel.analysis.chart
    falls = _falls(panel.frame(), chart) if isinstance(chart, Waterfall) else []
    return PanelPicture(panel.title, panel.sentence, falls=falls)


def _falls(frame: pd.DataFrame, chart: Waterfall) -> list[Fall]:
    bars, names = waterfall_bars(chart, frame)
    return [
        Fall(
            name,
            [
                Step(
                    bar["label"],
                    "" if bar["whole"] else bar["time_class"],
                    bar["start"],
                    bar["end"],
                    None if bar["significant"] else bar["verdict"],
                )
                for bar in bars[bars["run"] == run].to_dict("records")
            ],
        )
        for run, name in enumerate(names)
    ]


def _overview(timeline: TimelineScrubber) -> Overview:
    data = b""
    chunks, number = 1, 0
    while number < chunks:
        result, buffers = timeline.ask("meta", {"chunk": number})
        data, chunks, number = data + bytes(buffers[0]), result["chunks"], number + 1
    outline = json.loads(zlib.decompress(data))
    first, last = outline["extent"]
    length = max(last - first, 1)

    def share(time: int) -> float:
        return min(max((time - first) / length, 0.0), 1.0)

    steps: dict[int, tuple[str, int, int]] = {}
    for step in outline["iterations"]:  # one band for all ranks
        label, start, end = steps.get(step["iteration"], (step["label"], step["start"], step["end"]))
        steps[step["iteration"]] = label, min(start, step["start"]), max(end, step["end"])
    window = timeline.window
    of_device = len(outline["activity"]) == len(_CLASSES)
    return Overview(
        classes=_CLASSES if of_device else _HOST,
        activity=outline["activity"],
        iterations=[(label, share(start), share(end)) for label, start, end in steps.values()],
        window=None if window is None else (share(window[0]), share(window[1])),
        length=f"{duration(length)} of {'device' if of_device else 'CPU'} activity",
    )


def _answer(panel: BreakdownPanel | JobView | WhatIf) -> PanelPicture:
    if isinstance(panel, JobView | WhatIf):
        return panel.picture()
    if panel.status != "idle":
        return PanelPicture(panel.title, panel.message)
    chart = ANALYSES[panel.kind].chart
    bars = _bars(panel.frame(), chart) if isinstance(chart, Stack) and not chart.part else []
    title = f"{panel.title} ({panel.whole})" if panel.whole else panel.title
    return PanelPicture(title, panel.sentence, bars)


def _bars(frame: pd.DataFrame, chart: Stack) -> list[Bar]:
    if not {chart.whole, *(part.column for part in chart.series)} <= set(frame.columns):
        return []
    labels = [name for name in chart.label if name in frame.columns]
    return [
        Bar(
            ", ".join(f"{name} {row[name]}" for name in labels),
            [(part.label, part.time_class, float(row[part.column] or 0)) for part in chart.series],
            duration(row[chart.whole]),
        )
        for row in frame.to_dict("records")
    ]
