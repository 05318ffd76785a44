"""The first screen as a reader meets it: headline, bar, advice, evidence, of examples and of recordings.

Reports have the same views as a notebook, and open in a second; what needs a kernel is in JupyterLab.
"""

import os
import re
from ast import literal_eval
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Locator, Page, expect

from hta_widgets import Trace, TraceExplorer, examples
from hta_widgets.errors import HtaWidgetsError
from tests.browser.axe import serious_violations
from tests.browser.lab import TIMELINE, Lab, eventually
from tests.browser.test_inspector import FIRST_STREAM
from tests.browser.test_timeline import GUTTER
from tests.support import EVERY_CASE, GPU_TRACES, SHARED_TRACES

pytestmark = pytest.mark.browser

# Among these is each finding that any of the jobs has, each form and class of a part, each number of both,
# a job without any, of one rank and of many, with steps and without, and the longest headline.
RECORDED = [
    *("h100_gpt2_unpadded", "h100_resnet50_pageable", "h100_resnet50_channels_first"),
    *("hta/nccl_parser_config", "hta/trace_diff/control", "hta/trace_filter"),
    *("kineto/resnet50_num_workers_0", "tracelens/inference/sglang_decode"),
    "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "tracelens/mi300/resnet_act_checkpoint.json.gz",
    *(
        "recordings/alloc_heavy_a40",
        "recordings/ascend_trace_view",
        "recordings/cpu_ddp_accum_nosync_missing",
    ),
    *(
        "recordings/cpu_ddp_slow_rank2",
        "recordings/cpu_generate_kv_cat",
        "recordings/cpu_loader_slow_collate",
    ),
    *("recordings/inductor_2022", "recordings/kernelforge_cpu", "recordings/llama_4layers_4090"),
    *("recordings/mlprof_cpu", "recordings/resnet50_t4_gpu", "recordings/unsloth_mps"),
    "recordings/wsl_rows_lost",
]
JOBS = [*examples.names(recorded=False), *RECORDED]
if EVERY_CASE:
    RECORDINGS = SHARED_TRACES.parent / "recordings"
    FOLDERS = sorted(path for path in RECORDINGS.iterdir() if path.is_dir()) if RECORDINGS.is_dir() else []
    JOBS = [*examples.names(), *GPU_TRACES, *(f"recordings/{folder.name}" for folder in FOLDERS)]

# as the mock's check has it
LOOK = """(root) => {
  const all = (name) => [...root.querySelectorAll(name)];
  const box = (element) => element.getBoundingClientRect();
  const segments = root.querySelector('.hta-segments');
  const bar = segments && box(segments);
  const parts = all('.hta-segments > .hta-seg').map(box);
  const labels = all('.hta-labels li > span').map(box).sort((a, b) => a.left - b.left);
  const edge = box(root).right;
  const texts = all('.hta-scope *, .hta-story *, .hta-advice *').filter((element) =>
    [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
  return {
    hole: parts.length ? Math.max(...parts.map((part, at) =>
      at ? part.left - parts[at - 1].right : part.left - bar.left), bar.right - parts.at(-1).right) : 0,
    inARow: labels.every((label) => label.top === labels[0].top),
    overlap: labels.some((label, at) => at && label.left < labels[at - 1].right),
    over: all('.hta-scope *, .hta-story *, .hta-advice *').some((element) => box(element).right > edge + 1),
    sizes: [...new Set(texts.map((element) => getComputedStyle(element).fontSize))].sort(),
    cut: texts.some((element) => getComputedStyle(element).textOverflow === 'ellipsis'),
    scrolls: document.documentElement.scrollWidth > innerWidth,
    text: all('.hta-scope, .hta-story, .hta-advice h3').map((element) => element.innerText).join(' '),
    said: all('.hta-story h2, .hta-story-body > p, .hta-advice dd').map((element) => element.innerText),
  };
}"""
SIZES = {"11px", "13px", "20px"}
HOUSE_WORDS = r"(?i)\b(?:replayed|clock: automatic|going from one kernel|a bound)\b|(?<!be )\btold\b"
# Numbers that are names: of ranks and the like, of devices, of lines of code, of types, of matrices by size,
# of regions, of templates.
NAMED = (
    r"(?i)\b(?:ranks?|steps?|streams?|iterations?|threads?|places?|PCIe) \d[\d,–]*(?:(?:, | and )\d+)*"
    r"|(?<=\w)\(\d+\)|\b16[- ]bits?|\w+=\S+|\w+:\d+|\[[\d, ]+\]"
    r"|\bin (?-i:[A-Z])(?:(?! and )[^%.])*|<[^<>]*>"
)
NUMBER = r"(?<![\w.])[-−+]?\d[\d,.]*"
SENTENCES = r"(?<=;) |(?<=[.!?]) (?=[A-Z\d])"


def path_of(job: str) -> Path:
    if "/" not in job:
        return Path(str(examples.path(job)))
    path = SHARED_TRACES.parent / job if job.startswith("recordings/") else SHARED_TRACES / job
    if not path.exists():
        pytest.skip(f"{job!r} not found beside the folder of HTA_WIDGETS_TRACES")
    return path


def shot(page: Page, name: str) -> None:
    if folder := os.environ.get("HTA_WIDGETS_SHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png")


class Report(NamedTuple):
    file: Path
    content: dict[str, Any]  # of the story
    extent_ns: tuple[int, int]


Reports = Callable[[str], Report]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """The report of a job, written once."""
    folder = tmp_path_factory.mktemp("reports")

    @cache
    def report(job: str) -> Report:
        try:
            trace = Trace.open(path_of(job))
        except HtaWidgetsError as error:
            pytest.skip(f"{job} is not one job: {error}")
        explorer = TraceExplorer(trace, panels=[]).wait()
        file = explorer.to_html(folder / f"{job.replace('/', '-')}.html", timeout=120)
        content = dict(explorer.parts)["story"].content
        explorer.close()
        return Report(file, content, trace.extent_ns)

    return report


def opened(page: Page, report: Report) -> Locator:
    """A report of a job at rest."""
    page.goto(report.file.as_uri())
    root = page.locator(".hta-explorer")
    expect(root.locator(".hta-story h2")).to_be_visible(timeout=30_000)
    expect(root.locator("[data-ready=true]")).to_be_visible(timeout=30_000)
    return root


def looks_right(root: Locator) -> dict[str, Any]:
    def look() -> dict[str, Any]:
        seen: dict[str, Any] = root.evaluate(LOOK)
        assert seen["hole"] <= 4
        assert not (seen["inARow"] and seen["overlap"]), "labels overlap"
        assert not seen["over"] and not seen["scrolls"]
        assert set(seen["sizes"]) <= SIZES
        assert not seen["cut"]
        assert not re.findall(HOUSE_WORDS, seen["text"])
        return seen

    return eventually(look)


def around(timeline: Locator, start: int, end: int, *, filled: bool) -> None:
    """A place is in view, and where it is `filled` takes up some half of it."""
    begin, last = literal_eval(f"({timeline.get_attribute('data-view')})".replace(" ", ","))
    assert begin <= start and end <= last
    assert not filled or 0.3 <= (end - start) / (last - begin) <= 0.7


def height_of(root: Locator) -> float:
    box = root.locator(".hta-stage").bounding_box()
    assert box
    return box["height"]


def says_two_numbers_at_most(seen: dict[str, Any]) -> None:
    for text in seen["said"]:
        for sentence in re.split(SENTENCES, text):
            assert len(re.findall(NUMBER, re.sub(NAMED, "", sentence))) <= 2, sentence


@pytest.mark.parametrize("job", JOBS)
def test_bar_labels_and_evidence_of_every_finding(page: Page, reports: Reports, job: str) -> None:
    page.set_viewport_size({"width": 1340, "height": 1000})
    content = reports(job).content
    root = opened(page, reports(job))
    says_two_numbers_at_most(looks_right(root))
    expect(root.locator(".hta-story h2")).to_have_text(content["headline"])
    expect(root.locator(".hta-advice h3")).not_to_be_empty()
    timeline = root.locator(TIMELINE)
    height = height_of(root)
    root.locator(".hta-checks button").first.focus()
    first, last = reports(job).extent_ns
    for at, advice in enumerate(content["advice"][:9]):
        if not advice["places"]:
            continue
        page.keyboard.press(str(at + 1))
        place = advice["places"][0]
        expect(timeline).to_have_attribute("data-place", f"{place['start_ns']} {place['end_ns']}")
        # what takes nearly all of the recording cannot have as much around it
        filled = place["end_ns"] - place["start_ns"] <= 0.7 * (last - first)
        eventually(partial(around, timeline, place["start_ns"], place["end_ns"], filled=filled))
        says_two_numbers_at_most(looks_right(root))
        assert height_of(root) == height
        for key in ("ArrowRight", "Tab", "Shift+Tab", ".", ","):
            assert page.evaluate("document.activeElement !== document.body"), key
            page.keyboard.press(key)
        root.locator(".hta-checks button").first.focus()
    shot(page, f"story-{job.replace('/', '-')}")
    page.set_viewport_size({"width": 700, "height": 1000})
    looks_right(root)


@pytest.mark.parametrize(
    "job", ["ddp_4ranks", "gpt2_fsdp_full_shard", "inference_cuda_graphs", "recordings/resnet50_t4_gpu"]
)
def test_it_fits_narrow_pages(page: Page, reports: Reports, job: str) -> None:
    page.set_viewport_size({"width": 420, "height": 1400})
    root = opened(page, reports(job))
    root.locator("button.hta-seg").first.click()
    for width in (420, 700):
        page.set_viewport_size({"width": width, "height": 1400})
        looks_right(root)
        eventually(partial(list_and_advice_below, root))
        shot(page, f"story-{job.replace('/', '-')}-{width}")


def headline_in_sight(root: Locator) -> None:
    """The line that stays at the top does not cover it."""
    line, headline = root.locator(".hta-scope").bounding_box(), root.locator(".hta-story h2").bounding_box()
    assert line and headline and headline["y"] >= line["y"] + line["height"] - 1


def test_the_headline_stays_in_sight_above_a_place(page: Page, reports: Reports) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    root = opened(page, reports("inference_cuda_graphs"))
    headline_in_sight(root)
    root.locator("button.hta-seg").first.click()
    expect(root.locator(TIMELINE)).to_have_attribute("data-place", re.compile(r"\d+ \d+"))
    headline_in_sight(root)


def list_and_advice_below(root: Locator) -> None:
    rows = root.locator(".hta-labels li")
    lefts = rows.evaluate_all("(rows) => rows.map((row) => row.getBoundingClientRect().left)")
    assert len(set(lefts)) == 1
    advice, lanes = root.locator(".hta-advice").bounding_box(), root.locator(TIMELINE).bounding_box()
    assert advice and lanes and advice["y"] >= lanes["y"] + lanes["height"]


COLOURS = """(timeline) => {
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [timeline.clientWidth, timeline.clientHeight];
  const context = canvas.getContext('2d');
  for (const layer of timeline.querySelectorAll('canvas'))
    if (layer.width) context.drawImage(layer, 0, 0, canvas.width, canvas.height);
  const pixels = new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  return [...counts.values()].filter((count) => count > 200).length;
}"""
LOOKS = "(element) => [getComputedStyle(element).backgroundColor, getComputedStyle(element).color]"


@pytest.mark.parametrize(("scheme", "forced"), [("light", False), ("dark", False), ("dark", True)])
def test_axe_finds_nothing_and_forms_differ_in_grey(
    page: Page, reports: Reports, scheme: Any, forced: bool
) -> None:
    page.set_viewport_size({"width": 1340, "height": 1000})
    page.emulate_media(color_scheme=scheme, forced_colors="active" if forced else "none")
    root = opened(page, reports("inference_cuda_graphs"))
    if forced:
        _what_is_told_apart_by_colour_still_is(root)
    for part in (".hta-story", ".hta-advice"):
        assert not serious_violations(root.locator(part), colours=scheme == "dark")
    shot(page, f"story-{scheme}-forced" if forced else f"story-{scheme}")
    pictures = []
    for form in ("simulated", "bound", "unknown", "hidden"):
        page.evaluate(
            """(form) => { const part = document.querySelector('button.hta-seg');
              part.dataset.form = form; part.style.width = '60px'; part.style.filter = 'grayscale(1)'; }""",
            form,
        )
        pictures.append(root.locator("button.hta-seg").first.screenshot())
    assert len(set(pictures)) == 4
    page.emulate_media(color_scheme="light", forced_colors="none")


def _what_is_told_apart_by_colour_still_is(root: Locator) -> None:
    """Classes on the timeline and in the bar, what is chosen, and what has the focus."""
    lanes = root.locator(TIMELINE)
    assert lanes.evaluate(COLOURS) >= 6, "background, text, and classes of work"
    parts = root.locator(".hta-segments > .hta-part")
    grounds = parts.evaluate_all(
        "parts => parts.map(p => getComputedStyle(p).background + getComputedStyle(p).border)"
    )
    kinds = parts.evaluate_all(
        "parts => parts.map(({ dataset: { form, class: of } }) => (form === 'rest' ? of : form))"
    )
    assert len(set(grounds)) == len(set(kinds)) >= 3
    show = root.locator(".hta-advice").get_by_role("button", name="Show")
    before, marked = show.evaluate(LOOKS), lanes.screenshot()
    show.click()
    back = root.locator(".hta-advice").get_by_role("button", name="Back")
    ground, text = back.evaluate(LOOKS)
    assert ground != before[0] and ground != text
    assert lanes.screenshot() != marked
    back.click()
    rest = lanes.screenshot()
    lanes.press("W")
    assert lanes.evaluate("(el) => getComputedStyle(el).outlineStyle") != "none"
    lanes.press("0")
    box = lanes.bounding_box()
    assert box
    mouse = root.page.mouse
    mouse.move(box["x"] + 300, box["y"] + 130)
    mouse.down()
    mouse.move(box["x"] + 500, box["y"] + 130, steps=4)
    mouse.up()
    mouse.move(0, 0)
    assert lanes.screenshot() != rest


def test_a_wait_shows_the_late_rank_first_and_then_who_waits(page: Page, reports: Reports) -> None:
    page.set_viewport_size({"width": 1340, "height": 1000})
    root = opened(page, reports("ddp_4ranks"))
    late = reports("ddp_4ranks").content["advice"][0]
    assert late["ranks"] == [2, 3]
    root.locator("button.hta-seg").first.click()
    expect(root.locator(TIMELINE)).to_have_attribute("data-ranks", "2 3")
    expect(root.locator(TIMELINE)).to_have_attribute("data-cause", re.compile(r"\d+ \d+"))
    cause = root.locator(TIMELINE).get_attribute("data-cause")
    begin, end = map(int, (cause or "").split())
    place = late["places"][0]
    shared = min(end, place["end_ns"]) - max(begin, place["start_ns"])
    assert shared >= 0.5 * (place["end_ns"] - place["start_ns"])


def test_a_late_rank_without_a_device_shows_what_its_host_does(page: Page, reports: Reports) -> None:
    page.set_viewport_size({"width": 1340, "height": 1000})
    root = opened(page, reports("recordings/cpu_ddp_slow_rank2"))
    root.locator("button.hta-seg").first.click()
    lanes = root.locator(TIMELINE)
    expect(lanes).to_have_attribute("data-ranks", "2 3")
    box = lanes.bounding_box()
    assert box
    page.mouse.move(box["x"] + GUTTER + (box["width"] - GUTTER) * 0.3, box["y"] + FIRST_STREAM)
    expect(root.locator(".hta-timeline-tip")).to_contain_text("rank 2 · thread")


def test_a_selected_step_rescopes_all_numbers_and_one_click_goes_back(day: Lab, root: Locator) -> None:
    root.locator(".hta-step-strip button").filter(has_text="11").click()
    day.expect_kernel("explorer.selection.iterations", (11,))
    expect(root.locator(".hta-scope")).to_contain_text("step 11")
    told = literal_eval(day.kernel("story(trace, Scope(iterations=(11,))).as_dict()"))
    expect(root.locator(".hta-story h2")).to_have_text(told["headline"])
    assert told["headline"].startswith("Step 11: ")
    for number, advice in enumerate(told["advice"]):
        name = f"Finding {number + 1}: {advice['noun']}, {advice['label']}"
        expect(root.get_by_role("button", name=name)).to_be_visible()
    root.get_by_role("button", name="Whole job ×").click()
    day.expect_kernel("explorer.selection.iterations", ())
    expect(root.locator(".hta-scope")).to_contain_text("all 4 ranks, 4 steps")
    root.locator(".hta-rank-grid button").nth(2).click()
    expect(root.locator(".hta-scope")).to_contain_text("rank 2 of 4")
    expect(root.locator(".hta-scope")).to_have_attribute("data-narrowed", "true")


def test_showing_selects_nothing_and_escape_brings_back_what_was_visible(day: Lab, root: Locator) -> None:
    day.kernel("setattr(timeline, 'view', (0, 30_000_000))")
    day.expect_kernel("timeline.view", (0, 30_000_000))
    before = literal_eval(day.kernel("explorer.selection.to_dict()"))
    segment = root.locator("button.hta-seg").first
    segment.focus()
    day.page.keyboard.press("ArrowRight")
    expect(root.locator("button.hta-seg").nth(1)).to_be_focused()
    day.page.keyboard.press("Enter")
    day.expect_kernel("told.shown", 1)
    expect(root.locator(".hta-advice h3")).to_have_text("Data loader")
    expect(root.locator(TIMELINE)).to_have_attribute("data-place", re.compile(r"\d+ \d+"))
    place = literal_eval(day.kernel("told.content['advice'][1]['places'][0]"))
    day.expect_kernel(
        f"timeline.view[0] <= {place['start_ns']} < {place['end_ns']} <= timeline.view[1]", True
    )
    day.page.keyboard.press(".")
    expect(root.locator(".hta-advice-place")).to_contain_text("place 2 of 4")
    day.page.keyboard.press("Escape")
    day.expect_kernel("told.shown", -1)
    day.expect_kernel("timeline.view", (0, 30_000_000))
    day.expect_kernel("explorer.selection.to_dict()", before)
    expect(root.locator("button.hta-seg").nth(1)).to_be_focused()


def test_a_clicked_slice_takes_the_place_of_the_advice_and_gives_it_back(day: Lab, root: Locator) -> None:
    day.kernel("setattr(explorer.selection, 'focus', (0, 100))")
    expect(root.locator(".hta-advice")).to_be_hidden()
    expect(root.locator(".hta-inspector")).to_be_visible()
    root.get_by_role("button", name="‹ Findings").click()
    day.expect_kernel("explorer.selection.focus", None)
    expect(root.locator(".hta-advice")).to_be_visible()
    day.shot("story-lab")


def test_what_was_checked_opens_and_closes(day: Lab, root: Locator) -> None:
    count = len(literal_eval(day.kernel("told.content['clean']")))
    root.get_by_role("button", name=f"2 findings · {count} checks clean").click()
    checked = root.locator(".hta-checked")
    expect(checked.locator("li")).to_have_count(count)
    day.page.keyboard.press("Escape")
    expect(checked).to_have_count(0)
    day.expect_kernel("told.shown", -1)


def test_the_line_of_the_scope_fades_with_the_numbers_that_are_computed_anew(
    page: Page, reports: Reports
) -> None:
    scope = opened(page, reports("ddp_4ranks")).locator(".hta-scope")
    expect(scope.locator("strong")).to_have_css("opacity", "1")
    scope.evaluate(
        "(line) => { line.append(document.createElement('i')); line.lastChild.className = 'hta-busy' }"
    )
    expect(scope.locator("strong")).to_have_css("opacity", "0.5")
