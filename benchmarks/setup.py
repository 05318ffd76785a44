"""What a run of the benchmarks shares: recordings made for it, HTA's interpreter, caches of its own."""

from __future__ import annotations

import gzip
import statistics
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from benchmarks.installed import ROOT, interpreter
from benchmarks.process import run
from benchmarks.tile_trace import tile

SOURCE = ROOT / "hta_widgets/examples/data/ddp_4ranks/rank-0.pt.trace.json.gz"
HTA = ROOT / ".hta/bin/python"
QUIET_S = 0.37  # CPU of `import pandas` where the goals were set, with nothing else running


@dataclass(frozen=True)
class Setup:
    """One run: small ones measure less, on smaller recordings."""

    folder: Path
    rounds: int
    small: bool
    _made: dict[tuple[Path, float], Path] = field(default_factory=dict)

    def recording(self, megabytes: float, source: Path = SOURCE) -> Path:
        """A bundled example, repeated to so many MB of JSON; made once a run."""
        if (source, megabytes) not in self._made:
            folder = self.folder / f"{source.parent.name}-{megabytes:g}MB"
            folder.mkdir()
            tile(source, folder / "rank-0.json", megabytes)
            self._made[source, megabytes] = folder / "rank-0.json"
        return self._made[source, megabytes]

    def recording_of(self, events: int) -> Path:
        """... to about so many events with a duration."""
        from hta_widgets.trace.model import Trace

        once = Trace.open(SOURCE, cache=False).summary["events"]
        return self.recording(round(len(gzip.decompress(SOURCE.read_bytes())) / 1e6 * events / once, 1))

    @cached_property
    def pace(self) -> float:
        """How many times as much CPU `import pandas` takes here as where the goals were set."""
        return max(
            1.0, statistics.median(run(interpreter(), "import pandas").cpu for _ in range(5)) / QUIET_S
        )

    @property
    def kernels(self) -> dict[str, str]:
        """Compiled code kept for this run, and no columns: files are read."""
        return {"NUMBA_CACHE_DIR": str(self.folder / "kernels"), "HTA_WIDGETS_CACHE": "off"}

    @property
    def columns(self) -> dict[str, str]:
        """... and the columns of files kept, too."""
        return {**self.kernels, "HTA_WIDGETS_CACHE": str(self.folder / "columns")}

    @property
    def hta(self) -> str:
        if not HTA.exists():
            raise SystemExit("HTA is not here: `make bench` installs it into .hta")
        return str(HTA)
