"""The static picture: well-formed, escaped, and with the explorer's words."""

import base64
import re
from xml.etree import ElementTree

from hta_widgets import Trace, TraceExplorer
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
from hta_widgets.charts.svg.drawing import Drawing

NASTY = "</title><script>alert(1)</script>&\x00\ud800"


def texts(picture: Picture) -> list[str]:
    root = ElementTree.fromstring(picture.to_svg())
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
        "svg",
        "title",
        "rect",
        "text",
        "path",
    }
    return [element.text or "" for element in root.iter() if element.tag.endswith("text")]


def test_text_is_never_markup() -> None:
    overview = Overview([("Compute", "compute")], [[0.0, 2.0]], [(NASTY, 0, 1)], (0.25, 0.5), NASTY)
    bars = [Bar(NASTY, [(NASTY, "idle", 1.0)], NASTY)] * 12
    falls = [Fall(NASTY, [Step(NASTY, "idle", 0, 9, NASTY), Step(NASTY, "", 0, 9, None)])] * 12
    answers = [PanelPicture(NASTY, NASTY, bars), PanelPicture(NASTY, NASTY, falls=falls)]
    forms = ("simulated", "bound", "unknown", "hidden", "rest")
    story = StoryPicture(
        NASTY, NASTY, [NASTY], [Segment(0.2, form, "idle", NASTY) for form in forms], NASTY, NASTY,
        [FoundPicture(1, NASTY, NASTY, form, "idle") for form in forms],
    )  # fmt: skip
    picture = Picture(NASTY, [(NASTY, NASTY)], NASTY, overview, answers, NASTY, story)
    assert any("<script>" in text for text in texts(picture))
    html = picture._repr_mimebundle_()["text/html"]
    assert len(re.findall("<[a-z/]", html)) == 1


def test_text_is_cut_to_its_width() -> None:
    def drawn(length: int) -> str:
        drawing = Drawing(200)
        drawing.text(0, 0, "m" * length, width=100)
        root = ElementTree.fromstring(drawing.document(20, ""))
        return next(element.text or "" for element in root.iter() if element.tag.endswith("text"))

    fits = max(length for length in range(2, 50) if drawn(length) == "m" * length)
    assert 10 <= fits <= 20
    assert {drawn(length) for length in range(fits + 1, 60)} == {"m" * (fits - 1) + "…"}


def test_a_band_lies_above_its_base_line() -> None:
    """The outline visits the heights of the bins, above the line where SVG counts downwards."""
    drawing = Drawing(200)
    drawing.band(20, 50, 30, [(0, 4), (0, 10), (2, 10)], "#123456")
    (path,) = (
        shape for shape in ElementTree.fromstring(drawing.document(100, "")) if shape.tag.endswith("path")
    )
    assert path.attrib["transform"] == "translate(20.0 50.0) scale(10.0000 .1)"
    x = y = 0
    corners = []
    for way, by in re.findall(r"([vh])(-?\d+)", path.attrib["d"]):
        x, y = (x + int(by), y) if way == "h" else (x, y + int(by))
        corners.append((x, y / 10))
    assert corners == [
        (0, -4), (1, -4), (1, -10), (3, -10), (3, -2), (2, -2), (2, 0), (0, 0),
    ]  # fmt: skip


def test_nothing_to_draw_is_drawn(ddp: Trace) -> None:
    assert "the whole job" in " ".join(texts(Picture("Empty", [], "the whole job", None, [], "")))


def test_a_waterfall_is_drawn_to_scale() -> None:
    """Parts join, the whole begins at zero, doubtful ones are hollow, and what is too small is told."""
    steps = [
        Step("up", "compute", 0, 4_000_000, None),
        Step("down", "memory", 4_000_000, 3_000_000, "within noise"),
        Step("tiny", "idle", 3_000_000, 3_000_001, None),
        Step("Step", "", 0, 3_000_001, None),
    ]
    picture = Picture("", [], "", None, [PanelPicture("", "", falls=[Fall("b", steps)])], "")
    root = ElementTree.fromstring(picture.to_svg())
    bars = [rect.attrib for rect in root.iter() if rect.tag.endswith("rect") and rect.get("height") == "10.0"]
    up, down, whole = [(float(bar["x"]), float(bar["x"]) + float(bar["width"])) for bar in bars]
    assert up[1] == down[1] and up[0] == whole[0] and abs(down[0] - whole[1]) <= 0.1
    assert abs((up[1] - up[0]) / (down[1] - down[0]) - 4) < 0.01
    assert [bar["fill"] == "#fff" for bar in bars] == [False, True, False]
    shown = texts(picture)
    assert [text for text in shown if (text[:1] in "+−" and text) or text == "within noise"][:3] == [
        "+4.00 ms",
        "−1.00 ms",
        "within noise",
    ]
    assert "too small to draw: tiny +1 ns" in shown


def test_rows_of_bars_lie_below_each_other() -> None:
    bars = [Bar(name, [("part", "idle", 1.0), ("rest", "compute", 2.0)], "") for name in "ab"]
    root = ElementTree.fromstring(Picture("", [], "", None, [PanelPicture("", "", bars)], "").to_svg())
    drawn = [rect.attrib for rect in root.iter() if rect.tag.endswith("rect") and "x" in rect.attrib]
    rows = [(float(bar["y"]), float(bar["y"]) + float(bar["height"])) for bar in drawn[-4:]]
    assert rows[0] == rows[1] and rows[2] == rows[3] and rows[1][1] < rows[2][0]


def test_picture_of_an_explorer(ddp: Trace) -> None:
    explorer = TraceExplorer(ddp, selection={"ranks": [1], "query": " nccl "}, panels=["temporal_breakdown"])
    picture = explorer.snapshot()
    shown = texts(picture)
    (answer,) = picture.answers
    assert answer.sentence in " ".join(shown), "in lines"
    assert "Selected: ranks 1; search “nccl”" in shown
    assert "ProfilerStep#10" in shown
    (bar,) = answer.bars
    assert bar.name == "rank 1"
    row = explorer.frame("temporal_breakdown").iloc[0]
    assert sum(part[2] for part in bar.parts) == row["window_ns"]
    source = re.search(r"base64,([^\"]+)", picture._repr_mimebundle_()["text/html"])
    assert source
    assert base64.b64decode(source[1]).decode() == picture.to_svg()


def test_the_story_is_that_of_the_first_screen(ddp: Trace) -> None:
    """The same sentences, and as many parts of the bar, which fill it, in the same order and forms."""
    explorer = TraceExplorer(ddp, panels=[])
    picture = explorer.snapshot()
    told = dict(explorer.parts)["story"].content
    shown = " ".join(texts(picture))
    assert told["headline"] in shown
    assert f"All numbers are for {told['scope']}" in shown
    for number, advice in enumerate(told["advice"], 1):
        assert f"{number} {advice['noun']}" in shown
        assert advice["label"] in shown
    root = ElementTree.fromstring(picture.to_svg())
    bar = [rect.attrib for rect in root.iter() if "data-form" in rect.attrib]
    assert [part["data-form"] for part in bar] == [part["form"] for part in told["parts"]]
    ends = [float(part["x"]) + float(part["width"]) + 1 for part in bar]
    for end, following in zip(ends, bar[1:], strict=False):
        assert abs(end - float(following["x"])) <= 0.6
    assert (float(bar[0]["x"]), round(ends[-1])) == (16, 944)
    explorer.close()


def test_nothing_is_told_of_what_was_not_judged() -> None:
    assert not any("All numbers" in text for text in texts(Picture("Empty", [], "", None, [], "")))
