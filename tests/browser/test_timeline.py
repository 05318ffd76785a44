"""The timeline on real traces: search lights slices up, the critical path is drawn, gaps and keys work."""

import re
import time
from ast import literal_eval
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import TIMELINE, Lab, eventually, expect_view, show_all
from tests.support import shared_trace

pytestmark = pytest.mark.browser

GUTTER = 172  # js/src/timeline/timeline.ts
STREAM = 115  # the first stream of the first rank
LANES = 120  # well below the axis and the first rank's header


def open_timeline(lab: Lab, trace: str, options: str = "") -> Locator:
    lab.open_code(
        "from hta_widgets import Trace\n"
        "from hta_widgets.widgets.selection import Selection\n"
        "from hta_widgets.widgets.timeline_scrubber import TimelineScrubber\n"
        f"trace = Trace.open({str(shared_trace(trace))!r}, cache=False)\n"
        "selection = Selection()\n"
        f"timeline = TimelineScrubber(trace, selection=selection, {options or 'height=420'})\n"
        "timeline",
        name="timeline.ipynb",
    )
    timeline = lab.page.locator(TIMELINE).first
    expect(timeline).to_be_visible(timeout=60_000)
    return timeline


Opened = Callable[..., Locator]
REST = (
    "(selection.clear(), setattr(timeline, 'critical_path', False), setattr(timeline, 'counters', []), "
    "setattr(timeline, 'view', trace.extent_ns))"
)


@pytest.fixture(scope="module")
def opened(lab: Lab) -> Opened:
    """Opens a timeline, or puts it to rest if it is open: tests of the same one stand together."""
    known: list[tuple[str, str]] = []

    def open_or_rest(trace: str, options: str = "") -> Locator:
        if known[-1:] != [(trace, options)]:
            known.append((trace, options))
            return open_timeline(lab, trace, options)
        timeline = lab.page.locator(TIMELINE).first
        lab.page.mouse.move(0, 0)
        lab.kernel(REST)
        timeline.focus()
        for key in ("Escape", *["PageUp"] * 4):  # nothing is measured, and the first lanes are in sight
            lab.page.keyboard.press(key)
        show_all(timeline)
        expect_view(timeline, *literal_eval(lab.kernel("trace.extent_ns")))
        return timeline

    return open_or_rest


# Options of timelines whose slices stay in the kernel, or are all in the page.
MODES = {"kernel": "height=420, client_slices=10", "client": ""}


@pytest.fixture(scope="module", params=MODES.values(), ids=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    options: str = request.param
    return options


def bar(lab: Lab) -> Locator:
    return lab.page.locator(".hta-timeline-bar")


def view(lab: Lab) -> tuple[int, int]:
    lab.expect_kernel("timeline.view is not None", True)
    start, end = literal_eval(lab.kernel("timeline.view"))
    return start, end


def show(lab: Lab, timeline: Locator, start: int, end: int) -> None:
    """Set the view in the kernel and wait until the browser has drawn it."""
    view(lab)
    lab.kernel(f"setattr(timeline, 'view', ({start}, {end}))")
    expect_view(timeline, start, end)


# The pictures of lanes and of marks.
LANES_DRAWN = "(el) => el.querySelector('.hta-timeline-lanes').toDataURL()"
MARKS_DRAWN = "(el) => el.querySelector('.hta-timeline-marks').toDataURL()"


def expect_other(timeline: Locator, picture: str, before: str) -> None:
    timeline.page.wait_for_function(
        f"([el, before]) => ({picture})(el) !== before", arg=[timeline.element_handle(), before]
    )


def expect_colours(timeline: Locator, least: float, most: float) -> None:
    """Wait until the lanes show so many saturated pixels."""

    def within() -> None:
        assert least <= colours(timeline) < most

    eventually(within)


def expect_width(gutter: Locator, pixels: int) -> None:
    def wide() -> None:
        box = gutter.bounding_box()
        assert box and box["width"] == pixels

    eventually(wide)


def focused_name(lab: Lab) -> str:
    name: str = literal_eval(
        lab.kernel(
            "None if selection.focus is None else (lambda r, e: r.names[r.name[e]])"
            "(trace.rank(selection.focus[0]), "
            "int((trace.rank(selection.focus[0]).event_id == selection.focus[1]).nonzero()[0][0]))"
        )
    )
    return name


def colours(timeline: Locator) -> int:
    """How many saturated pixels the lanes show: fading takes them away."""
    count: int = timeline.evaluate(
        """(el, top) => {
          const canvas = el.querySelector('.hta-timeline-lanes');
          const data = canvas.getContext('2d').getImageData(
            0, top, canvas.width, canvas.height - top).data;
          let n = 0;
          for (let i = 0; i < data.length; i += 4) {
            const rgb = data.subarray(i, i + 3);
            n += Math.max(...rgb) - Math.min(...rgb) > 60;
          }
          return n;
        }""",
        LANES,
    )
    return count


def test_search_lights_up_and_is_stepped_through(lab: Lab, opened: Opened, mode: str) -> None:
    timeline = opened("hta/trace_filter", mode)
    before = colours(timeline)
    lab.kernel("setattr(selection, 'query', 'AddMM')")
    count = literal_eval(lab.kernel("int(trace.events()['name'].str.contains('addmm', case=False).sum())"))
    assert count > 2
    expect(bar(lab)).to_contain_text(f"{count:,} matches")
    expect_colours(timeline, 1, before / 2)
    lab.shot(f"timeline-search-{'kernel' if mode else 'client'}")
    lab.shot(f"timeline-search-{'kernel' if mode else 'client'}-dark", dark=True)

    timeline.focus()
    lab.page.keyboard.press("n")
    lab.expect_kernel("selection.focus is not None", True)
    first = lab.kernel("selection.focus")
    assert "addmm" in focused_name(lab).lower()
    lab.page.keyboard.press("Enter")
    lab.expect_kernel(f"selection.focus not in (None, {first})", True)
    assert "addmm" in focused_name(lab).lower()
    lab.page.keyboard.press("Shift+N")
    lab.expect_kernel(f"selection.focus == {first}", True)

    lab.kernel("setattr(selection, 'ranks', (1,))")
    mine = literal_eval(
        lab.kernel("int(trace.events().query('rank == 1')['name'].str.contains('addmm', case=False).sum())")
    )
    expect(bar(lab)).to_contain_text(f"{mine:,} matches")
    lab.kernel("selection.clear()")
    expect(bar(lab)).not_to_contain_text("match")
    lab.expect_no_errors()


def test_matches_are_listed_and_gone_to(lab: Lab, opened: Opened, mode: str) -> None:
    opened("hta/trace_filter", mode)
    lab.kernel("setattr(selection, 'query', 'nccl')")
    bar(lab).get_by_role("button", name="List").click()
    listed = bar(lab).get_by_role("region", name="Slices that match")
    rows = listed.get_by_role("listitem")
    count = int(lab.kernel("len(timeline.matches)"))
    expect(rows).to_have_count(min(count, 100))
    listed.get_by_role("button", name="by longest").click()
    longest = "timeline.matches.sort_values('dur_ns', ascending=False, kind='stable').iloc[0]"
    length = f"{int(lab.kernel(f'int({longest}.dur_ns)')):,} ns"
    expect(rows.first.locator("[data-numeric]").nth(1)).to_have_attribute("title", length)
    rows.first.get_by_role("button").click()
    lab.expect_kernel(f"selection.focus == (int({longest}['rank']), int({longest}['event_id']))", True)
    # the view has come near enough to read it
    lab.expect_kernel(
        f"bool(timeline.view[0] < {longest}['start_ns'] and "
        f"timeline.view[1] > {longest}['start_ns'] + {longest}['dur_ns'] and "
        f"timeline.view[1] - timeline.view[0] < 8 * {longest}['dur_ns'])",
        True,
    )
    lab.page.keyboard.press("ArrowDown")
    lab.expect_kernel(f"selection.focus == (int({longest}['rank']), int({longest}['event_id']))", False)
    lab.shot(f"match-list-{'kernel' if mode else 'client'}")
    lab.page.keyboard.press("Escape")
    expect(listed).to_have_count(0)
    expect(bar(lab).get_by_role("button", name="List")).to_be_focused()
    lab.expect_no_errors()


def test_a_brush_tells_what_it_holds_while_it_is_drawn(lab: Lab, opened: Opened, mode: str) -> None:
    timeline = opened("hta/trace_filter", mode)
    box = timeline.bounding_box()
    assert box is not None
    y, x = box["y"] + 300, box["x"] + GUTTER + (box["width"] - GUTTER) * 0.3
    lab.page.mouse.move(x, y)
    lab.page.mouse.down()
    lab.page.mouse.move(x + 200, y, steps=5)
    words = timeline.locator(".hta-timeline-sums")
    expect(words).to_be_visible()
    expect(words).to_contain_text("streams busy")
    lab.shot(f"timeline-brush-words-{'kernel' if mode else 'client'}")
    lab.page.mouse.up()
    lab.expect_kernel("selection.window is not None", True)
    inside = "(lambda e, w: e[(e.start_ns < w[1]) & ((e.start_ns + e.dur_ns > w[0]) | (e.start_ns >= w[0]))])"
    for _ in range(40):  # the window of the drag's last moment comes after those of its earlier ones
        count = literal_eval(lab.kernel(f"len({inside}(trace.events(), selection.window))"))
        if f"{count:,} slices on the lanes shown" in words.inner_text():
            break
        lab.page.wait_for_timeout(250)
    assert count > 2
    line = lab.page.locator(".hta-timeline-focus").first
    expect(words).to_contain_text(f"{count:,} slices on the lanes shown")
    expect(line).to_contain_text(f"{count:,} slices on the lanes shown")
    # fewer lanes, fewer slices: rank 1 alone, by hand
    lab.kernel("setattr(selection, 'ranks', (1,))")
    lab.page.mouse.move(x + 200, y)
    lab.page.mouse.down()
    lab.page.mouse.move(x + 260, y, steps=3)
    lab.page.mouse.up()
    of_one = f"{inside}(trace.events().query('rank == 1'), selection.window)"
    lab.expect_kernel(f"(len({of_one}) > 0, selection.window[1] > {0})", (True, True))
    lab.page.wait_for_timeout(400)
    count = literal_eval(lab.kernel(f"len({of_one})"))
    lab.kernel("exec('from hta_widgets.analysis import temporal_breakdown', globals())")
    lab.kernel("exec('from hta_widgets.trace.scope import Scope', globals())")
    busy = (
        "(lambda f: 100 * f['busy_ns'][0] / f['window_ns'][0])"
        "(temporal_breakdown(trace, Scope(ranks=(1,), window_ns=selection.window)))"
    )
    share = literal_eval(lab.kernel(f"float({busy})"))
    expect(line).to_contain_text(f"{count:,} slice")
    told = re.search(r"streams busy ([\d.]+) %", line.text_content() or "")
    assert told is not None and float(told[1]) == pytest.approx(share, abs=0.06)
    lab.page.mouse.move(x + 20, y - 40)
    expect(words).to_be_hidden()  # what is under the pointer now is told instead
    lab.expect_no_errors()


def test_names_light_up_too(lab: Lab, opened: Opened) -> None:
    opened("hta/trace_filter")
    name = literal_eval(lab.kernel("str(trace.events()['name'].iloc[0])"))
    count = literal_eval(lab.kernel(f"int((trace.events()['name'] == {name!r}).sum())"))
    lab.kernel(f"setattr(selection, 'names', ({name!r}, 'no such name'))")
    expect(bar(lab)).to_contain_text(re.compile(rf"(^|\D){count:,} match"))
    lab.kernel("setattr(selection, 'query', 'no such text')")
    expect(bar(lab)).to_contain_text("no matches")
    lab.expect_no_errors()


def test_keys_go_to_the_caller_and_the_first_call(lab: Lab, opened: Opened) -> None:
    timeline = opened("hta/trace_filter")
    lab.kernel("setattr(selection, 'query', 'aten::addmm')")
    expect(bar(lab)).to_contain_text("match")
    timeline.focus()
    lab.page.keyboard.press("n")
    lab.expect_kernel("selection.focus is not None", True)
    inner = lab.kernel("selection.focus")
    lab.page.keyboard.press("ArrowUp")
    lab.expect_kernel(f"selection.focus != {inner}", True)
    caller = literal_eval(lab.kernel("selection.focus"))
    table = "trace.events().query('rank == {}').set_index('event_id')"
    times = "(lambda t: tuple(int(x) for x in t[['start_ns', 'end_ns']]))({}.loc[{}])"
    outer = literal_eval(lab.kernel(times.format(table.format(caller[0]), caller[1])))
    rank, event = literal_eval(inner)
    own = literal_eval(lab.kernel(times.format(table.format(rank), event)))
    assert outer[0] <= own[0]
    assert own[1] <= outer[1]
    lab.page.keyboard.press("ArrowDown")
    lab.expect_kernel(f"selection.focus != {caller}", True)
    lab.expect_no_errors()


def test_pan_minimap_and_keys_move_the_view(lab: Lab, opened: Opened) -> None:
    timeline = opened("hta/trace_filter")
    first, last = literal_eval(lab.kernel("trace.extent_ns"))
    quarter = (last - first) // 4
    show(lab, timeline, first + quarter, first + 2 * quarter)
    box = timeline.bounding_box()
    assert box is not None
    mouse, keyboard = lab.page.mouse, lab.page.keyboard
    lanes = box["width"] - GUTTER

    # Shift and a drag to the left by half the lanes: half a view later
    keyboard.down("Shift")
    mouse.move(box["x"] + GUTTER + 0.75 * lanes, box["y"] + 200)
    mouse.down()
    mouse.move(box["x"] + GUTTER + 0.25 * lanes, box["y"] + 200, steps=5)
    mouse.up()
    keyboard.up("Shift")
    lab.expect_kernel(f"abs(timeline.view[0] - {first + quarter + quarter // 2}) < {quarter // 50}", True)
    lab.expect_kernel("selection.window is None", True)

    # the frame in the minimap moves by as much of the trace as of the minimap
    start = view(lab)[0]
    centre = box["x"] + GUTTER + lanes * (start + quarter / 2 - first) / (last - first)
    mouse.move(centre, box["y"] + 20)
    mouse.down()
    mouse.move(centre - 0.25 * lanes, box["y"] + 20, steps=5)
    mouse.up()
    lab.expect_kernel(f"abs(timeline.view[0] - {start - quarter}) < {quarter // 50}", True)

    timeline.focus()
    keyboard.press("w")
    width = "timeline.view[1] - timeline.view[0]"
    lab.expect_kernel(f"abs({width} - {0.95 * quarter}) < {quarter // 500}", True)
    keyboard.press("Shift+W")  # by more
    lab.expect_kernel(f"abs({width} - {0.75 * 0.95 * quarter}) < {quarter // 500}", True)
    before = view(lab)[0]
    keyboard.press("d")
    lab.expect_kernel(
        f"abs(timeline.view[0] - {before + 0.05 * 0.75 * 0.95 * quarter}) < {quarter // 500}", True
    )
    keyboard.press("0")
    lab.expect_kernel(f"timeline.view[1] - timeline.view[0] >= {last - first}", True)
    lab.expect_no_errors()


def test_fingers_pan_and_zoom(lab: Lab, opened: Opened) -> None:
    timeline = opened("hta/trace_filter")
    first, last = literal_eval(lab.kernel("trace.extent_ns"))
    middle, span = (first + last) // 2, last - first
    show(lab, timeline, middle - span // 8, middle + span // 8)
    box = timeline.bounding_box()
    assert box is not None
    centre = box["x"] + GUTTER + (box["width"] - GUTTER) / 2
    y = box["y"] + 200
    touch = lab.page.context.new_cdp_session(lab.page)

    def fingers(kind: str, *xs: float) -> None:
        points = [{"x": x, "y": y, "id": i} for i, x in enumerate(xs)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    fingers("touchStart", centre - 50, centre + 50)
    for spread in (60, 70, 80, 90, 100):
        fingers("touchMove", centre - spread, centre + spread)
    fingers("touchEnd")
    lab.expect_kernel(f"abs(timeline.view[1] - timeline.view[0] - {span // 8}) < {span // 100}", True)
    lab.expect_kernel(f"abs(sum(timeline.view) / 2 - {middle}) < {span // 100}", True)

    fingers("touchStart", centre)
    for dx in (20, 60, 100):
        fingers("touchMove", centre - dx)
    fingers("touchEnd")
    lab.expect_kernel(f"sum(timeline.view) / 2 > {middle + span // 200}", True)
    lab.expect_kernel("selection.window is None", True)
    lab.expect_no_errors()


def test_flags_with_notes(lab: Lab, opened: Opened) -> None:
    """M flags the moment under the pointer; its note is written, changed and removed; Shift+M goes on."""
    timeline = opened("hta/trace_filter")
    start, end = view(lab)
    box = timeline.bounding_box()
    assert box is not None
    note = timeline.get_by_label("Note of the flag")

    def at(share: float) -> float:
        return GUTTER + share * (box["width"] - GUTTER)

    # the keys of the note are not the timeline's: W would zoom
    timeline.focus()
    lab.page.mouse.move(box["x"] + at(0.3), box["y"] + 250)
    lab.page.keyboard.press("m")
    expect(note).to_be_focused()
    lab.page.keyboard.type("wait, why?")
    lab.page.keyboard.press("Enter")
    expect(note).to_have_count(0)
    expect(timeline).to_be_focused()
    lab.expect_kernel("[note for _, note in selection.flags]", ["wait, why?"])
    (first,) = literal_eval(lab.kernel("[time for time, _ in selection.flags]"))
    assert first == pytest.approx(start + 0.3 * (end - start), abs=2 * (end - start) / box["width"])
    assert view(lab) == (start, end)

    # what Python sets is drawn; a name stays text, and a click on the flag shows it
    second, text = round(start + 0.8 * (end - start)), "<img src=x onerror=alert(1)>"
    before = timeline.evaluate(MARKS_DRAWN)
    lab.kernel(f"setattr(selection, 'flags', [*selection.flags, ({second}, {text!r})])")
    expect_other(timeline, MARKS_DRAWN, before)
    timeline.click(position={"x": at(0.8), "y": 75})
    expect(note).to_have_value(text)
    lab.shot("timeline-flags")
    note.fill("")
    lab.page.keyboard.press("Enter")
    lab.expect_kernel("selection.flags[1]", (second, ""))

    # Shift+M goes round; Escape leaves the note as it was, a click elsewhere keeps it
    lab.page.keyboard.press("Shift+M")
    expect(note).to_have_value("wait, why?")
    note.fill("dropped")
    lab.page.keyboard.press("Escape")
    expect(note).to_have_count(0)
    lab.page.keyboard.press("Shift+M")
    expect(note).to_have_value("")
    note.fill("kept")
    timeline.click(position={"x": at(0.5), "y": 75})
    lab.expect_kernel("[note for _, note in selection.flags]", ["wait, why?", "kept"])

    # others take it away, and it can be undone
    lab.page.keyboard.press("Shift+M")
    timeline.get_by_role("button", name="Remove").click()
    lab.expect_kernel("[note for _, note in selection.flags]", ["kept"])
    lab.kernel("[selection.clear(), selection.undo()]")
    lab.expect_kernel("[note for _, note in selection.flags]", ["wait, why?", "kept"])
    lab.expect_no_errors()


def test_the_time_between_two_slices(lab: Lab, opened: Opened) -> None:
    """X holds on to the focused slice, Shift+click measures from it; both say what the events say."""
    timeline = opened("hta/trace_filter")
    lab.kernel(
        "globals().update(found=trace.events().query('rank == 0 and stream == 7 and dur_ns > 200_000')"
        ".sort_values('start_ns').iloc[:2])"
    )
    a, b = literal_eval(lab.kernel("found[['event_id', 'start_ns', 'dur_ns']].to_numpy().tolist()"))
    apart, last = b[1] - a[1], max(a[1] + a[2], b[1] + b[2])
    show(lab, timeline, a[1] - apart, last + apart)
    line = lab.page.locator(".hta-timeline-focus")
    told = f"start to start .* \\({apart:,} ns\\) · end to start .* \\({b[1] - a[1] - a[2]:,} ns\\)"

    lab.kernel(f"setattr(selection, 'focus', (0, {b[0]}))")
    expect(line).to_contain_text(f"start {b[1]:,} ns")
    timeline.focus()
    lab.page.keyboard.press("x")
    lab.kernel(f"setattr(selection, 'focus', (0, {a[0]}))")
    expect(line).to_have_text(re.compile(told))
    lab.shot("timeline-measured")
    lab.page.keyboard.press("Escape")
    expect(line).to_contain_text("drag: select · Shift+drag: pan")
    lab.expect_kernel("selection.focus is None", True)  # else the next line changes nothing there

    lab.kernel(f"setattr(selection, 'focus', (0, {a[0]}))")
    expect(line).to_contain_text(f"start {a[1]:,} ns")
    box = timeline.bounding_box()
    assert box is not None
    share = (b[1] + b[2] / 2 - a[1] + apart) / (last - a[1] + 2 * apart)
    at = {"x": GUTTER + share * (box["width"] - GUTTER), "y": STREAM}
    timeline.click(position=at, modifiers=["Shift"])
    expect(line).to_have_text(re.compile(told))
    lab.expect_kernel("selection.focus, selection.window", ((0, b[0]), None))
    timeline.click(position=at)
    expect(line).to_contain_text(f"start {b[1]:,} ns")  # a plain click begins anew
    lab.expect_no_errors()


@pytest.mark.parametrize("options", MODES.values(), ids=MODES)
def test_click_on_a_gap_selects_it_and_a_key_its_time(lab: Lab, opened: Opened, options: str) -> None:
    timeline = opened("hta/ns_resolution_trace", options)
    # the longest time between two kernels that follow each other on the first stream
    lab.kernel("globals().update(stream=trace.events().dropna(subset='stream').sort_values('start_ns'))")
    lab.kernel("globals().update(stream=stream[stream['stream'] == stream['stream'].min()])")
    lab.kernel("globals().update(gaps=stream['start_ns'].values[1:] - stream['end_ns'].values[:-1])")
    edges = "int(stream['end_ns'].values[gaps.argmax()]), int(stream['start_ns'].values[gaps.argmax() + 1])"
    gap = literal_eval(lab.kernel(f"({edges})"))
    width = gap[1] - gap[0]
    show(lab, timeline, gap[0] - width, gap[1] + width)
    box = timeline.bounding_box()
    assert box is not None
    lab.page.mouse.move(box["x"] + GUTTER + (box["width"] - GUTTER) / 2, box["y"] + 116)
    expect(lab.page.locator(".hta-timeline-tip")).to_contain_text("idle")
    lab.shot(f"timeline-gap-{'kernel' if options else 'client'}")
    lab.page.mouse.down()
    lab.page.mouse.up()
    lab.expect_kernel("selection.gap and (selection.gap[2], selection.window)", (gap[0], None))
    lab.page.keyboard.press("r")
    lab.expect_kernel("selection.window", gap)
    lab.expect_no_errors()


def test_critical_path_is_drawn_and_says_what_bounds_it(lab: Lab, opened: Opened) -> None:
    timeline = opened("hta/ns_resolution_trace")
    before = colours(timeline)
    toggle = bar(lab).get_by_role("button", name="Critical path")
    expect(toggle).to_have_attribute("aria-pressed", "false")
    toggle.click()
    lab.expect_kernel("timeline.critical_path", True)
    message = bar(lab).locator(".hta-timeline-path")
    expect(message).to_contain_text("The path leads through", timeout=30_000)
    expect_colours(timeline, 0, before)
    lab.shot("timeline-path")
    lab.shot("timeline-path-dark", dark=True)

    # the longest segment: in view, under the pointer
    path = "__import__('hta_widgets').analysis.critical_path(trace)"
    start, end, event = literal_eval(
        lab.kernel(
            f"(lambda f: tuple(int(f.loc[(f['dur_ns'] * (f['kind'] == 'kernel')).idxmax(), c]) "
            f"for c in ('start_ns', 'end_ns', 'event_id')))({path})"
        )
    )
    lab.kernel(f"setattr(selection, 'focus', (0, {event}))")
    show(lab, timeline, start - (end - start), end + (end - start))
    box = timeline.bounding_box()
    assert box is not None
    tip = lab.page.locator(".hta-timeline-tip")
    x = box["x"] + GUTTER + (box["width"] - GUTTER) / 2
    for y in range(100, int(box["height"]), 10):  # wherever the stream's lane stands
        lab.page.mouse.move(x, box["y"] + y)
        if tip.is_visible() and "critical path" in tip.inner_text():
            break
    expect(tip).to_contain_text("bound by a compute kernel")
    lab.shot("timeline-path-hover")
    toggle.click()
    expect(message).to_have_text("")
    lab.expect_no_errors()


def test_counters_under_the_lanes_say_what_the_kernel_says(lab: Lab, opened: Opened) -> None:
    timeline = opened("hta/ns_resolution_trace")
    button = bar(lab).get_by_role("button", name="Counters")
    button.click()
    listed = bar(lab).get_by_role("group", name="Counters")
    listed.get_by_role("checkbox", name="queue length").check()
    lab.expect_kernel("timeline.counters", ["queue length"])
    lab.page.keyboard.press("Escape")
    expect(listed).to_have_count(0)
    expect(button).to_be_focused()
    tip = timeline.locator(".hta-timeline-tip")
    box = timeline.bounding_box()
    assert box is not None
    x, y = 600, STREAM + 24  # the first row below the first stream
    deadline = time.monotonic() + 30
    while True:  # the values come a little later than the row, and are read when the pointer moves
        lab.page.mouse.move(box["x"] + x + 1, box["y"] + y)
        lab.page.mouse.move(box["x"] + x, box["y"] + y)
        expect(tip).to_contain_text("queue length")
        if "not known yet" not in tip.inner_text():
            break
        assert time.monotonic() < deadline, "no values came"
        lab.page.wait_for_timeout(50)
    start, end = view(lab)
    at = start + (end - start) * (x - 1 - GUTTER) / (box["width"] - 2 - GUTTER)
    pixel = (end - start) / (box["width"] - 2 - GUTTER)
    lab.kernel("exec('from hta_widgets.analysis import counters; frame = counters(trace)')")
    key = re.search(r"queue length · (stream \d+)", tip.inner_text())
    assert key is not None
    near, far = at - 2 * pixel, at + 2 * pixel
    held = literal_eval(
        lab.kernel(
            f"(lambda f: [int(v) for v in f['value'][f['time_ns'].between({near}, {far})]]"
            f" + [int(f['value'][f['time_ns'] <= {near}].iloc[-1])])"
            f"(frame[(frame['counter'] == 'queue length') & (frame['key'] == {key[1]!r})])"
        )
    )
    told = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) launch", tip.inner_text())][:-2]
    assert told and min(held) <= min(told) <= max(told) <= max(held)
    lab.page.mouse.click(box["x"] + x, box["y"] + y)
    expect(lab.page.locator(".hta-timeline-focus")).to_contain_text("queue length")
    lab.kernel("setattr(timeline, 'counters', [])")
    lab.page.mouse.move(box["x"] + x, box["y"] + y + 1)
    expect(tip.filter(has_text="queue length")).to_have_count(0)


def test_lanes_are_grouped_moved_and_put_back(lab: Lab, opened: Opened) -> None:
    timeline = opened("hta/trace_diff/control", "height=260")
    rows = "timeline.lanes[['group', 'label']].values.tolist()"
    (group, first), (_, second) = literal_eval(lab.kernel(rows))[:2]
    rank = group.removeprefix("Rank ")
    # a name is dragged below the next one
    box = timeline.bounding_box()
    assert box is not None
    x, y = box["x"] + 60, box["y"] + STREAM
    lab.page.mouse.move(x, y)
    lab.page.mouse.down()
    lab.page.mouse.move(x, y + 30, steps=4)
    lab.shot("timeline-lane-dragged")
    assert timeline.locator(".hta-timeline-marks").is_visible()  # where it would stand
    lab.page.mouse.up()
    lab.expect_kernel(f"{rows}[:2]", [[group, second], [group, first]])
    lab.expect_kernel("(timeline.pinned, selection.window)", ([], None))  # no click, no brush
    # and back by a key, with the pointer on it
    timeline.hover(position={"x": 60, "y": STREAM + 28})
    timeline.focus()
    timeline.hover(position={"x": 61, "y": STREAM + 28})
    lab.page.keyboard.press("{")
    lab.expect_kernel(f"{rows}[:2]", [[group, first], [group, second]])

    bar(lab).get_by_role("button", name="Lanes").click()
    menu = bar(lab).get_by_role("group", name="Lanes")
    menu.get_by_label("Rank, then process and device").check()
    lab.expect_kernel("timeline.lane_groups", "process")
    lab.expect_kernel("timeline.lanes['group'].tolist()[0]", f"Rank {rank} · {' '.join(first.split()[:2])}")
    menu.get_by_label("Stream or kind of thread").check()
    lab.expect_kernel("timeline.lanes['group'].tolist()[0]", f"{first.split(' ', 2)[2]} of each rank")
    lab.shot("timeline-lanes-grouped")
    menu.get_by_role("button", name="Usual order").click()
    lab.expect_kernel("timeline.lane_order", [])
    menu.get_by_label("Rank", exact=True).check()
    lab.page.keyboard.press("Escape")
    expect(menu).to_have_count(0)
    lab.expect_kernel(f"{rows}[:2]", [[group, first], [group, second]])
    lab.expect_no_errors()


def test_the_gutter_is_widened_and_remembered_and_ranks_stay_named(lab: Lab, opened: Opened) -> None:
    timeline = opened("hta/trace_diff/control", "height=260")
    edge = timeline.get_by_role("separator", name="Width of the lanes' names")
    gutter = timeline.locator(".hta-timeline-gutter")
    expect_width(gutter, GUTTER)
    box = edge.bounding_box()
    lab.page.mouse.move(box["x"] + 3, box["y"] + 150)
    lab.page.mouse.down()
    lab.page.mouse.move(box["x"] + 63, box["y"] + 150, steps=3)
    lab.page.mouse.up()
    expect_width(gutter, GUTTER + 60)
    lab.kernel("setattr(timeline, 'counters', [])")
    lab.expect_kernel("(selection.window, timeline.pinned)", (None, []))  # no brush, no pin
    edge.focus()
    lab.page.keyboard.press("ArrowLeft")
    expect_width(gutter, GUTTER + 60 - 24)
    lab.run_all()
    expect(lab.page.locator(TIMELINE).first).to_be_visible(timeout=60_000)
    expect_width(gutter, GUTTER + 36)
    edge.dblclick(position={"x": 3, "y": 200})
    expect_width(gutter, GUTTER)
    # the rank's header stays while its lanes scroll by: a click on it still folds them
    timeline.focus()
    for _ in range(2):
        lab.page.keyboard.press("PageDown")
    lab.page.wait_for_timeout(300)  # the scrolling is drawn
    before = timeline.evaluate(LANES_DRAWN)
    timeline.click(position={"x": 60, "y": LANES - 28})
    expect_other(timeline, LANES_DRAWN, before)
    lab.expect_kernel("timeline.pinned", [])
    lab.expect_no_errors()


def test_python_is_taken_out_of_the_calls(lab: Lab, opened: Opened) -> None:
    timeline = opened("tracelens/mi300", "height=300")
    threads = "timeline.lanes.query('kind == \"thread\"')"
    everything = literal_eval(lab.kernel(f"int({threads}['slices'].sum())"))
    modules = "trace.events()['name'].astype('str').str.startswith('nn.Module: ').sum()"
    count = literal_eval(lab.kernel(f"int({modules})"))
    assert count > 0
    bar(lab).get_by_role("button", name="Lanes").click()
    bar(lab).get_by_label("Modules and Python on lanes of their own").check()
    lab.expect_kernel(
        f"int({threads}[{threads}['label'].str.startswith('modules · ')]['slices'].sum())", count, seconds=30
    )
    lab.expect_kernel(f"int({threads}['slices'].sum())", everything)
    expect(timeline).to_be_visible()
    lab.page.wait_for_timeout(500)
    lab.shot("timeline-python-apart")
    lab.expect_no_errors()
