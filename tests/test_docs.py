"""The pages say what the code says, and the site is whole."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib import util
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from traitlets.config import Config

from docs import shown
from docs.finding_pages import TOPICS
from docs.finding_pictures import MARK
from hta_widgets import __all__ as public_names
from hta_widgets.analysis import ANALYSES, COMPARISONS
from hta_widgets.analysis.findings.rules import RULES
from hta_widgets.widgets.panels import available_panels
from tests.support import ROOT

pytestmark = pytest.mark.slow

DOCS = ROOT / "docs"
IMAGES = DOCS / "images"
CHANGELOG = ROOT / "CHANGELOG.md"
# Pages of the site's own source that exist only in the site.
MADE = re.compile(r"(\.\./)?((analyses|comparisons)/\w+|terms|finding_examples)\.md")
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/recording/README.md")),
    ROOT / "hta_widgets/examples/recorded/README.md",
    ROOT / "tests/verdicts/readings/README.md",
    CHANGELOG,
    *sorted(DOCS.rglob("*.md")),
]
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
LONGEST_LINE = 119
PATH = re.compile(r"[\w.*-]*(/[\w.*-]*)+|[\w*-]+\.(py|ts|tsx|md|toml)")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
# What CONTRIBUTING names that a checkout does not have.
NOT_IN_A_CHECKOUT = {"../shared/traces", ".venv/bin/activate"}
MOST_BYTES = 28_000  # of a picture, on average
MOST_BYTES_DRAWN = 40_000  # of one that the build draws


def test_event_columns_page_follows_the_schema() -> None:
    spec = util.spec_from_file_location("event_columns", DOCS / "event_columns.py")
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (DOCS / "event_columns.md").read_text(encoding="utf-8")
    assert written == module.page(), "run `python docs/event_columns.py`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    assert not [t for t in targets if not MADE.fullmatch(t) and not (page.parent / t).exists()]


# A changelog names what there was at its time.
@pytest.mark.parametrize("page", [page for page in PAGES if page != CHANGELOG], ids=lambda page: page.name)
def test_named_scripts_and_targets_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {*re.findall(r"(?:`|^)make ([a-z]\w*)", text, re.MULTILINE)} <= {*targets}
    scripts = re.findall(r"^python (\S+\.py)", text, re.MULTILINE)
    assert not [name for name in scripts if not (ROOT / name).exists() and not (page.parent / name).exists()]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 120


def prose_of(page: Path) -> list[str]:
    """The lines of a page outside tables and code."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return [line for line in text.splitlines() if not line.startswith("|")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_prose_has_no_long_lines(page: Path) -> None:
    assert not [line for line in prose_of(page) if len(line) > LONGEST_LINE]


def test_every_page_is_checked() -> None:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    skill = "hta_widgets/cli/SKILL.md"  # for agents: tests/cli/test_skill.py
    assert {ROOT / name for name in listed.stdout.splitlines()} <= {*PAGES, ROOT / skill}


def paths_in(text: str) -> set[str]:
    """The paths among what is written as code: words with a slash, or with the suffix of a source file."""
    code = re.findall(r"```\w*\n(.*?)```|`([^`\n]+)`", text, re.DOTALL)
    words = {word.rstrip(",;:") for block, span in code for word in (block or span).split()}
    return {word for word in words if PATH.fullmatch(word)}


def test_paths_in_contributing_exist() -> None:
    named = paths_in(CONTRIBUTING) - NOT_IN_A_CHECKOUT
    assert not [path for path in sorted(named) if not any(ROOT.glob(path.rstrip("/")))]


def test_contributing_has_every_package_on_its_map() -> None:
    packages = {path.parent for path in (ROOT / "hta_widgets").rglob("__init__.py")} - {ROOT / "hta_widgets"}
    named = {ROOT / path.rstrip("/") for path in paths_in(CONTRIBUTING)}
    nested = ROOT / "hta_widgets/hta"  # its packages are HTA's; those below them are left to their docstrings
    assert {path for path in packages if path.parent.parent != nested} <= named


# in one process: most of the time goes into importing the package
HELP_OF_EACH = """import runpy, sys
sys.path[0], *scripts = sys.argv[1:]
places = [*sys.path]
for script in scripts:
    sys.argv, sys.path[:] = [script, "--help"], places
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        assert not end.code, script
    print("ended:", script)"""


def test_benchmarks_find_what_they_measure() -> None:
    """What they import at their top, that is."""
    scripts = sorted(map(str, (ROOT / "benchmarks").glob("*.py")))
    command = [sys.executable, "-c", HELP_OF_EACH, str(ROOT / "benchmarks"), *scripts]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ended: ") == len(scripts) > 20, done.stdout


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_panel_has_its_picture(theme: str) -> None:
    kinds = {entry["kind"] for entry in available_panels()}
    pictures = {path.stem.removesuffix(f"-{theme}") for path in (IMAGES / "panels").glob(f"*-{theme}.webp")}
    assert kinds <= pictures, "run `make screenshot`"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_drawn_comparison_has_its_picture(theme: str) -> None:
    drawn = {kind for kind, item in COMPARISONS.items() if item.chart is not None}
    pictures = {path.name for path in (IMAGES / "comparisons").glob("*.webp")}
    assert {f"{kind}-{theme}.webp" for kind in drawn} <= pictures, "run `make screenshot`"


def test_no_picture_is_older_than_what_it_shows() -> None:
    if not shown.WRITTEN.exists():
        pytest.skip("docs/images/shown.json is missing: run `make screenshot`")
    written = json.loads(shown.WRITTEN.read_text(encoding="utf-8"))
    assert {name: each["words"] for name, each in written.items()} == shown.words(), "run `make screenshot`"
    assert {name: each["files"] for name, each in written.items()} == {
        name: shown.files(name) for name in written
    }


def test_pictures_are_small() -> None:
    sizes = [path.stat().st_size for path in IMAGES.rglob("*.webp")]
    assert sum(sizes) < MOST_BYTES * len(sizes)


class Page(HTMLParser):
    """What a page of the site asks for, where its links lead, and the anchors it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.add(given.get("id", ""))
        if tag in ("script", "img") and "src" in given:
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(given["href"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    """The site, built: path -> page. A warning fails the build."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "docs.build", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert built.returncode == 0, built.stderr[-4000:]
    return {path: Page(path) for path in folder.rglob("*.html") if "_static" not in path.parts}


def page_of(site: dict[Path, Page], name: str) -> Page:
    return next(page for path, page in site.items() if path.as_posix().endswith(name))


@pytest.mark.parametrize("kind", ANALYSES)
def test_every_analysis_has_its_page(site: dict[Path, Page], kind: str) -> None:
    page = page_of(site, f"/analyses/{kind}.html")
    assert ANALYSES[kind].title in page.text
    assert {"use", "arguments", "columns", "needs", "in-hta"} <= page.anchors
    assert not [text for text in ("<!-- ", "{kind}", "**") if text in main_part(page)]


@pytest.mark.parametrize("kind", COMPARISONS)
def test_every_comparison_has_its_page(site: dict[Path, Page], kind: str) -> None:
    page = page_of(site, f"/comparisons/{kind}.html")
    assert COMPARISONS[kind].title in page.text
    assert {"use", "arguments", "columns", "needs"} <= page.anchors
    assert not [text for text in ("<!-- ", "{kind}", "{function}", "**") if text in main_part(page)]


def test_every_finding_has_its_picture_and_its_example(site: dict[Path, Page]) -> None:
    """One that its recording no longer has fails the build."""
    assert {rule.topic for rule in RULES} - {*TOPICS} == {"request_times"}  # it says only what is unknown
    page = page_of(site, "/finding_examples.html")
    assert main_part(page).count("<blockquote>") == len(TOPICS)
    folder = min(site, key=lambda path: len(path.parts)).parent / "_images"
    for topic in TOPICS:
        drawn = (folder / f"{topic}.svg").read_text(encoding="utf-8")
        assert f"_images/{topic}.svg" in page.text and len(drawn) < MOST_BYTES_DRAWN, topic
        assert MARK in drawn and drawn.count("<rect") > 3, topic  # the frame, and something beside it


def main_part(page: Page) -> str:
    return page.text.split("<article", 1)[1].split("</article>", 1)[0]


def test_every_public_name_is_described(site: dict[Path, Page]) -> None:
    modules = {"analysis", "edits", "examples"}
    anchors = page_of(site, "/api.html").anchors | page_of(site, "/hta.html").anchors
    assert {f"hta_widgets.{name}" for name in public_names if name not in modules} | modules <= anchors


def test_links_of_the_site_lead_somewhere(site: dict[Path, Page]) -> None:
    broken = []
    for path, page in site.items():
        for link in page.links:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if parts.scheme or link == "#":
                continue
            if not target.exists() or (
                parts.fragment and unquote(parts.fragment) not in site[target].anchors
            ):
                broken.append(f"{path.name}: {link}")
    assert not broken


def test_the_site_asks_no_server(site: dict[Path, Page]) -> None:
    for path, page in site.items():
        for asked in page.loaded:
            assert not urlsplit(asked).scheme.startswith("http") and not asked.startswith("//"), asked
            assert (path.parent / unquote(urlsplit(asked).path)).exists(), asked
    root = min(site, key=lambda path: len(path.parts)).parent
    styles = [path.read_text(encoding="utf-8") for path in root.rglob("*.css")]
    assert not [style for style in styles if re.search(r"(@import\s+|url\()['\"]?(https?:)?//", style)]


def test_the_configuration_for_prompt_answers_is_one_that_jupyter_takes() -> None:
    """Its effect was measured: answers to a panned timeline after 29 ms instead of 41."""
    serverapp = pytest.importorskip("jupyter_server.serverapp")
    websocket = pytest.importorskip("jupyter_server.services.kernels.websocket")
    config = Config()
    (lines,) = re.findall(r"```python\n(from jupyter_server.*?)```", (DOCS / "hosts.md").read_text(), re.S)
    exec(lines, {"c": config})
    made = config.ServerApp.kernel_websocket_connection_class
    assert serverapp.ServerApp(config=config).kernel_websocket_connection_class is made
    (jupyter,) = made.__bases__
    assert "connect" in vars(jupyter) and callable(websocket.KernelWebsocketHandler.set_nodelay)


def test_every_promise_of_trust_names_a_test_that_exists() -> None:
    rows = [
        line.split(" | ")
        for line in (ROOT / "docs" / "trust.md").read_text().splitlines()
        if line.startswith("| ") and not line.startswith("| promise")
    ]
    named = [(row[0], re.findall(r"`((?:tests|js/test)/[\w/.]+)`", row[1])) for row in rows if len(row) == 3]
    assert len(named) > 40
    text = (ROOT / "docs" / "trust.md").read_text().split("\n## ", 1)[1]
    parts = [part for part in re.split(r"\n\n+", text) if part[0] not in "|#" and "\n" in part]
    named += [(part, re.findall(r"`(tests/[\w/.]+)`", part)) for part in parts]
    assert len(parts) >= 4
    assert [promise for promise, tests in named if not tests] == []
    assert [test for _, tests in named for test in tests if not (ROOT / test).exists()] == []
