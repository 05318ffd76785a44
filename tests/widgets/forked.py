"""What children of a test do; a module that they can import."""

from pathlib import Path

from hta_widgets import TraceExplorer, examples

JOB = Path(examples.__file__).parent / "data" / "gpt2_baseline"
SECONDS = 60


def report(target: str) -> int:
    """The size of the report of an explorer that is made here."""
    return TraceExplorer(JOB).to_html(target, timeout=SECONDS).stat().st_size
