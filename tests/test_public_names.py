"""What `import hta_widgets` offers, and what it costs to look."""

import json
import subprocess
import sys
from importlib import import_module

import hta_widgets

LOOK = """
import json, sys
import hta_widgets
names = dir(hta_widgets)
print(json.dumps([names, sorted(name for name in sys.modules if name.startswith("hta_widgets"))]))
"""


def test_dir_shows_the_public_names_only() -> None:
    import_module("hta_widgets.analysis.compare")  # leaves names of modules in their packages
    shown = {name for name in dir(hta_widgets) if not name.startswith("__")}
    assert shown == set(hta_widgets.__all__)
    assert {"__version__", "__doc__", "__all__"} <= set(dir(hta_widgets))


def test_looking_imports_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True)
    shown, loaded = json.loads(done.stdout)
    assert "TraceExplorer" in shown
    assert loaded == ["hta_widgets", "hta_widgets.version"]
