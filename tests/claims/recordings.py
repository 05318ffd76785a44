"""All recordings that there are to check sentences on: the bundled examples, and the shared ones."""

from __future__ import annotations

from pathlib import Path

from hta_widgets import examples
from tests.support import SHARED_TRACES

__all__ = ["EXAMPLES", "SHARED", "path_of", "why_not_checked"]

_BESIDE = SHARED_TRACES.parent


def _shared() -> list[str]:
    found = [f"traces/{path.relative_to(SHARED_TRACES)}" for path in _files(SHARED_TRACES)]
    for folder in ("recordings", "cases", "cases/serving"):
        if (_BESIDE / folder).is_dir():
            found += [
                f"{folder}/{each.name}"
                for each in sorted((_BESIDE / folder).iterdir())
                if each.name not in ("serving", "README.md")
            ]
    return found


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [path for path in sorted(folder.rglob("*")) if path.name.endswith((".json", ".json.gz"))]


# The slow reader knows Kineto's files alone; what is said of these is held by tests of their own.
_OTHER_WORDS = {
    "cases/b01_xpu_no_stream": "ids that two calls share: tests/trace/test_impossible_records.py",
    "cases/b06_npu_trace_view_str": "Ascend's rows: tests/trace/test_devices.py, test_ascend.py",
    "cases/e10_old_autograd_cuda": "torch.autograd's export: tests/trace/test_devices.py",
    "cases/f01_raw_newline_bare_quotes": "no JSON: tests/trace/test_lenient.py",
    "cases/f03_backslashes_u_n_t": "no JSON: tests/trace/test_lenient.py",
    "cases/h19_npu_direct_str": "Ascend's rows: tests/trace/test_devices.py, test_ascend.py",
    "recordings/ascend_trace_view": "Ascend's rows: tests/trace/test_devices.py, test_ascend.py",
    "recordings/autograd_profiler_torch1": "torch.autograd's export: tests/trace/test_devices.py",
}
# It believes every record, where the package estimates those that cannot be true.
_REPAIRED = {"cases/a02_overflow_dur", "cases/a11_some_kernels_ts0", "cases/h03_overflow_mild"}

EXAMPLES = examples.names()
SHARED = _shared()


def path_of(name: str) -> Path:
    """Where a recording lies."""
    if name in EXAMPLES:
        return examples.path(name)
    if name.startswith("traces/"):
        return SHARED_TRACES / name.removeprefix("traces/")
    return _BESIDE / name


def why_not_checked(name: str) -> str:
    """Why the slow reader cannot check what is said of a recording; "" if it can."""
    if name in _OTHER_WORDS:
        return f"the slow reader cannot read it: {_OTHER_WORDS[name]}"
    if name in _REPAIRED:
        return "records are estimated: tests/trace/test_impossible_records.py"
    return ""
