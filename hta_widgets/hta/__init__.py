"""HTA's own module names: a notebook migrates by writing `hta_widgets.hta` for `hta` in its imports.

`trace_analysis`, `trace_diff`, `memory_analysis`, `common`, `analyzers`, `configs` and `utils` hold what HTA
keeps under these names; `methods` turns our answers into HTA's. Nothing outside this package imports it.
"""

from hta_widgets.hta.version import __version__ as __version__
