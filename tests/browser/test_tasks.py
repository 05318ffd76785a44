"""Tasks of every day, each done by at most two actions: a click, drag, key, or text with Enter.

A task begins with the explorer at rest and counts what its user does; the kernel then knows the answer, and
what answers is in sight.
"""

import re
from ast import literal_eval
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from hta_widgets.formatting import duration
from tests.browser.four_ranks import NAME
from tests.browser.lab import TIMELINE, Lab, expect_view
from tests.browser.test_steps import comes_to_the_top
from tests.browser.test_timeline import GUTTER, MARKS_DRAWN, expect_other

pytestmark = pytest.mark.browser

MOST = 2
FIRST_STREAM = 116  # of the first rank, CSS pixels from the timeline's top


class User:
    """Acts on an explorer, and counts."""

    def __init__(self, lab: Lab, root: Locator) -> None:
        self.lab, self.root, self.actions = lab, root, 0
        self.lanes = root.locator(TIMELINE).first

    def click(self, what: Locator, **how: object) -> None:
        self.actions += 1
        what.click(**how)  # type: ignore[arg-type]

    def press(self, key: str) -> None:
        """A key where the focus is; at rest that is the timeline."""
        self.actions += 1
        self.lab.page.keyboard.press(key)

    def launch(self, text: str) -> None:
        """Open the launcher by its key, type, and take the first choice."""
        self.press("/")
        expect(self.root.get_by_role("combobox", name="Panel, event name")).to_be_focused()
        self.actions += 1
        self.lab.page.keyboard.type(text)
        self.lab.page.keyboard.press("Enter")

    def at(self, start: int, end: int) -> tuple[float, float]:
        """Where a time is on the first stream, once the timeline shows it and as much on either side."""
        self.lab.kernel(f"setattr(timeline, 'view', ({2 * start - end}, {2 * end - start}))")
        expect_view(self.lanes, 2 * start - end, 2 * end - start)
        self.lanes.hover()  # which waits until it stands where it stays
        box = self.lanes.bounding_box()
        assert box is not None
        return box["x"] + GUTTER + (box["width"] - GUTTER) / 2, box["y"] + FIRST_STREAM

    def click_at(self, start: int, end: int) -> None:
        place = self.at(start, end)
        self.actions += 1
        self.lab.page.mouse.move(*place)
        expect(self.root.locator(".hta-timeline-tip")).to_be_visible()
        self.lab.page.mouse.click(*place)

    def told(self, label: str) -> Locator:
        rows = self.root.locator(".hta-inspector dl > div")
        return rows.filter(has=self.lab.page.locator("dt", has_text=label)).first


@pytest.fixture
def user(day: Lab, root: Locator) -> Iterator[User]:
    user = User(day, root)
    user.lanes.focus()
    for _ in range(8):  # a task before may have scrolled the lanes
        day.page.keyboard.press("PageUp")
    yield user
    assert user.actions <= MOST


def test_the_slowest_kernel_of_the_slowest_step(user: User) -> None:
    steps = "trace.iterations.assign(ns=trace.iterations.end_ns - trace.iterations.start_ns)"
    slowest = literal_eval(user.lab.kernel(f"int({steps}.sort_values('ns').iloc[-1].iteration)"))
    tall = user.root.locator(".hta-step-strip button").filter(has_text=str(slowest))
    user.click(tall)
    user.click(user.root.get_by_role("button", name="Longest", exact=True))
    user.lab.expect_kernel("selection.iterations", (slowest,))
    longest = f"analysis.longest_events(trace, Scope(iterations=({slowest},))).iloc[0]"
    user.lab.expect_kernel(f"selection.focus == (int({longest}['rank']), int({longest}['event_id']))", True)
    expect(user.root).to_contain_text("longest event 1 of 50")
    expect(user.root.locator(".hta-inspector h3").first).to_be_in_viewport(ratio=1)
    user.lab.shot("task-slowest-kernel")


def test_why_this_gap(user: User) -> None:
    user.press("i")
    user.lab.expect_kernel("inspector.status == 'idle' and inspector.content['kind']", "gap")
    longest = "analysis.idle_gaps(trace).sort_values('dur_ns').iloc[-1]"
    user.lab.kernel(f"globals().update(longest={longest})")
    user.lab.expect_kernel(
        "bool(inspector.facts.start_ns <= longest.start_ns and longest.end_ns <= inspector.facts.end_ns)",
        True,
    )
    expect(user.root.locator(".hta-inspector")).to_contain_text("Why")
    expect(user.root.locator(".hta-inspector h3").first).to_be_in_viewport(ratio=1)
    expect(user.lanes).to_be_in_viewport()
    share = "(inspector.facts.end_ns - inspector.facts.start_ns) / (timeline.view[1] - timeline.view[0])"
    user.lab.expect_kernel(f"0.3 <= {share} <= 0.7", True)
    user.lab.expect_kernel("max(inspector.facts.causes_ns, key=inspector.facts.causes_ns.get)", "data_stall")
    expect(user.root.locator(".hta-inspector")).to_contain_text("data")
    user.lab.shot("task-gap")


def test_same_kernel_next_and_who_launched_it(user: User) -> None:
    user.lab.kernel("globals().update(it=work[work['name'].str.contains('xmma_gemm')].iloc[40])")
    number, start, end = literal_eval(user.lab.kernel("(int(it.event_id), int(it.start_ns), int(it.end_ns))"))
    user.click_at(start, end)
    user.lab.expect_kernel("selection.focus", (0, number))
    user.lab.expect_kernel("inspector.facts is not None and inspector.facts.event.event_id", number)
    operator = literal_eval(user.lab.kernel("inspector.facts.operator.name"))
    expect(user.told("Operator")).to_contain_text(operator)
    expect(user.told("Operator")).to_be_in_viewport()
    user.press(">")
    following = "inspector.facts is not None and inspector.facts.same_name.previous is not None and "
    user.lab.expect_kernel(f"{following} inspector.facts.same_name.previous.event_id", number)


def test_what_fixing_the_loader_gives(user: User) -> None:
    user.click(user.root.get_by_role("button", name="Finding 2: Data loader"))
    advice = user.root.locator(".hta-advice")
    expect(advice).to_contain_text("4.85 %")
    user.click(advice.get_by_role("button", name="What if…"))
    user.lab.expect_kernel(
        "[edit.expression for edit in explorer.edits]",
        ["edits.without('enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__')"],
    )
    user.lab.expect_kernel("explorer.panels", ("what_if",))
    whole = "explorer.what_if().query('iteration.isna()')"
    user.lab.expect_kernel(f"({whole}['after_ns'] < {whole}['before_ns']).tolist()", [True] * 4)
    expect(user.root.locator(".hta-panel[data-kind=what_if] h2")).to_be_in_viewport()
    comes_to_the_top(user.lab, user.root, "what_if")


def test_the_owner_of_the_peak_of_memory(user: User) -> None:
    user.launch("memory owners")
    user.lab.expect_kernel("explorer.panels", ("memory_owners",))
    owner = "explorer.frame('memory_owners').sort_values('share_pct').iloc[-1]"
    name, operator = literal_eval(user.lab.kernel(f"({owner}['name'], {owner}['operator'])"))
    panel = user.root.locator(".hta-panel[data-kind=memory_owners]")
    expect(panel).to_contain_text(f"belongs to {name}")
    expect(panel.locator("tbody tr").first).to_contain_text(operator)
    comes_to_the_top(user.lab, user.root, "memory_owners")


def test_the_straggler_and_its_cause(user: User) -> None:
    late = user.root.locator(".hta-advice")
    expect(late).to_contain_text("Rank 2 is late")
    expect(late).to_contain_text("the same operations take 1.12 times as long")
    user.click(late.get_by_role("button", name="Open panel"))
    user.lab.expect_kernel("explorer.panels", ("stragglers",))
    frame = "explorer.frame('stragglers')"
    user.lab.expect_kernel(f"int({frame}.sort_values('caused_wait_ns').iloc[-1]['rank'])", 2)
    comes_to_the_top(user.lab, user.root, "stragglers")


def test_the_events_of_a_brush_as_a_file(user: User) -> None:
    x, y = user.at(20_000_000, 21_000_000)
    user.actions += 1
    user.lab.page.mouse.move(x - 100, y)
    user.lab.page.mouse.down()
    user.lab.page.mouse.move(x + 100, y, steps=4)
    user.lab.page.mouse.up()
    user.lab.expect_kernel("selection.window is not None", True)
    user.lab.expect_kernel("(inspector.status, inspector.content['kind'])", ("idle", "area"))
    with user.lab.page.expect_download() as saved:
        user.click(user.root.get_by_role("button", name="Save events"))
    lines = saved.value.path().read_text().splitlines()
    user.lab.expect_kernel("len(explorer.events)", len(lines) - 1)
    expect(user.root.locator(".hta-inspector")).to_be_in_viewport()
    assert lines[0].startswith('"rank","event_id","name"') and len(lines) > 10


def test_why_a_step_is_slow(user: User) -> None:
    """The longest step and the shortest one, one sentence, and parts that add up."""
    lengths = "(trace.iterations.end_ns - trace.iterations.start_ns).groupby(trace.iterations.iteration)"
    order = f"{lengths}.mean().sort_values().index.tolist()"
    shortest, *_, longest = literal_eval(user.lab.kernel(order))
    steps = user.root.locator(".hta-step-strip button")
    user.click(steps.filter(has_text=str(longest)))
    user.click(steps.filter(has_text=str(shortest)), modifiers=["ControlOrMeta"])
    first, second = sorted((shortest, longest))
    user.lab.expect_kernel("selection.iterations", (first, second))
    user.lab.expect_kernel("(inspector.status, inspector.content['kind'])", ("idle", "steps"))
    difference = f"analysis.step_difference(trace, {first}, {second})['change_ns'].tolist()"
    parts = literal_eval(user.lab.kernel(difference))
    assert sum(parts[:-1]) == parts[-1] != 0
    beside = user.root.locator(".hta-inspector")
    expect(beside.locator("h3")).to_contain_text(f"Step {second} is {duration(abs(parts[-1]))}")
    expect(beside.locator("h3")).to_be_in_viewport(ratio=1)
    expect(beside.locator(".hta-difference > p").first).to_contain_text("The GPU ")
    user.lab.page.wait_for_function("(el) => el.scrollWidth <= el.clientWidth", arg=beside.element_handle())
    user.lab.shot("task-two-steps")


def test_a_report_is_shared(user: User) -> None:
    user.click(user.root.locator(".hta-header").get_by_role("button", name="Share"))
    item = user.lab.page.get_by_role("menuitem", name="Save HTML report")
    expect(item).to_be_in_viewport(ratio=1)
    with user.lab.page.expect_download() as saved:
        user.click(item)
    assert saved.value.suggested_filename == "ddp_4ranks.html"
    assert "<script" in saved.value.path().read_text()
    expect(user.root.get_by_role("button", name="Saved")).to_be_in_viewport(ratio=1)


def test_model_flops_from_a_stated_number_of_tokens(user: User) -> None:
    """Not one of the ten: the box beside the utilization."""
    user.launch("mfu")
    panel = user.root.locator(".hta-panel[data-kind=utilization]")
    user.lab.expect_kernel("explorer.panels", ("utilization",))
    box = panel.get_by_label("Tokens per step")
    box.fill("4096")
    user.lab.page.keyboard.press("Tab")
    per_rank = 6 * 81_162_240 * 4096 * 4 // 4  # 6 P T of four steps, shared by four ranks
    whole = "explorer.frame('utilization').query('rank == 0 and iteration.isna()')"
    user.lab.expect_kernel(
        f"{whole}[['model_flops', 'flops_from']].values.tolist()", [[per_rank, "6 P T"]], seconds=20
    )
    expect(panel).to_contain_text("2.66 % MFU")
    expect(panel).to_contain_text("at the right: how well MFU is known")
    panel.scroll_into_view_if_needed()
    user.lab.shot("utilization-tokens")
    box.fill("some")
    box.press("Tab")
    expect(panel).to_contain_text("a whole number above 0, such as 65,536, not 'some'")
    user.lab.shot("utilization-refused")
    box.fill("")
    box.press("Tab")
    expect(panel).to_contain_text("14.6 % MFU")


def test_all_softmax(user: User) -> None:
    user.launch("softmax")
    user.lab.expect_kernel("selection.query or selection.names", "softmax")
    count = literal_eval(user.lab.kernel("len(explorer.events)"))
    assert count > 0
    expect(user.root.locator(".hta-timeline-matches")).to_contain_text(f"{count:,} matches")
    expect(user.root.locator(".hta-timeline-matches")).to_be_in_viewport(ratio=1)


def test_lanes_are_filtered_and_pinned(user: User) -> None:
    """Not one of the ten: what they take place in."""
    box = user.root.get_by_role("searchbox", name="Filter lanes")
    box.fill("rank 2, stream, -annotation")
    user.lab.expect_kernel("timeline.lanes.query('shown')['label'].tolist()[0]", "GPU 2 stream 7")
    user.lanes.hover(position={"x": 60, "y": FIRST_STREAM})
    expect(user.root.locator(".hta-timeline-tip")).to_contain_text("GPU 2 stream 7")
    user.lanes.focus()
    user.lab.page.keyboard.press("p")
    user.lab.expect_kernel("timeline.pinned", [(2, "GPU 2 stream 7")])
    box.fill("")
    user.lab.expect_kernel("bool(timeline.lanes['shown'].all())", True)
    user.lab.shot("lanes-pinned")
    user.lanes.hover(position={"x": 60, "y": FIRST_STREAM - 20})
    user.lanes.focus()
    user.lab.page.keyboard.press("p")
    user.lab.expect_kernel("timeline.pinned", [])
    user.lab.page.keyboard.press("h")
    user.lab.expect_kernel("timeline.lanes.query('not shown')['label'].tolist()", ["GPU 2 stream 7"])
    box.fill("")


def test_the_inspector_is_as_wide_as_it_was_left(user: User) -> None:
    edge = user.root.get_by_role("separator", name="Width of the inspector")
    inspector = user.root.locator("[data-area=inspector]")
    user.lab.kernel("setattr(selection, 'focus', (0, int(work['event_id'].iloc[0])))")
    expect(edge).to_be_visible()
    edge.hover(position={"x": 4, "y": 200})  # once the page has come to rest
    before = inspector.bounding_box()
    at = edge.bounding_box()
    assert before is not None and at is not None
    user.lab.page.mouse.move(at["x"] + 4, at["y"] + 200)
    user.lab.page.mouse.down()
    user.lab.page.mouse.move(at["x"] - 96, at["y"] + 200, steps=3)
    user.lab.page.mouse.up()
    expect(edge).to_have_attribute("aria-valuenow", "420")
    edge.press("ArrowRight")
    expect(edge).to_have_attribute("aria-valuenow", "396")
    after = inspector.bounding_box()
    assert after is not None and round(after["width"] - before["width"]) == 76
    kept = "Object.entries(localStorage).find(([key]) => key.includes('inspector-width'))"
    key, width = user.lab.page.evaluate(kept)
    assert key.endswith(NAME) and width == "396"
    edge.dblclick()
    expect(edge).to_have_attribute("aria-valuenow", "320")


def test_the_timeline_is_as_high_as_it_was_left(user: User) -> None:
    edge = user.root.get_by_role("separator", name="Height of the timeline")
    edge.hover(position={"x": 200, "y": 3})  # once the page has come to rest
    at = edge.bounding_box()
    assert at is not None
    user.lab.page.mouse.down()
    user.lab.page.mouse.move(at["x"] + 200, at["y"] - 97, steps=3)
    user.lab.page.mouse.up()
    expect(edge).to_have_attribute("aria-valuenow", "380")
    user.lab.expect_kernel("timeline.height", 380)
    lanes = user.lanes.bounding_box()
    assert lanes is not None and round(lanes["height"]) == 380
    edge.press("ArrowDown")
    user.lab.expect_kernel("timeline.height", 404)
    kept = "Object.entries(localStorage).find(([key]) => key.includes('timeline-height'))"
    key, height = user.lab.page.evaluate(kept)
    assert key.endswith(NAME) and height == "404"
    # what the code asks for comes first, and the edge follows
    user.lab.kernel("setattr(timeline, 'height', 300)")
    expect(edge).to_have_attribute("aria-valuenow", "300")
    edge.dblclick()
    user.lab.expect_kernel("timeline.height", 480)
    user.lab.page.evaluate("() => localStorage.clear()")


def test_a_focused_collective_shows_who_waits_for_whom(user: User) -> None:
    """Not one of the ten: words below the timeline, and arrows in it."""
    lab, lanes = user.lab, user.lanes
    lab.kernel("globals().update(found=analysis.collectives(trace))")
    lab.kernel("globals().update(longest=found[found['rank'] == 0].nlargest(1, 'dur_ns').iloc[0])")
    lab.kernel("setattr(selection, 'focus', (0, int(longest['event_id'])))")
    line = user.root.locator(".hta-timeline-focus")
    expect(line).to_contain_text(re.compile(r"waits 1\.\d+ ms for rank 2"))
    with_arrows = lanes.evaluate(MARKS_DRAWN)
    # to the rank that all wait for: a click on its name in the inspector does the same
    late = "found[(found['rank'] == 2) & (found['match'] == longest['match'])]"
    lab.kernel(f"setattr(selection, 'focus', (2, int({late}['event_id'].iloc[0])))")
    expect(line).to_contain_text(re.compile(r"3 ranks wait for this one, up to 1\.\d+ ms"))
    expect_other(lanes, MARKS_DRAWN, with_arrows)
