"""The widget managers of hosts that cannot be had here, from npm: VS Code's, and what Colab's is made of.

``python -m tests.browser.managers`` fetches them into ``.venv``: the bundles, without the hundreds of
packages that they were made from.
"""

import tarfile

import hatch_build
from tests.support import ROOT

FOLDER = ROOT / ".venv" / "widget-managers"

# of the Jupyter extension of VS Code, whole
VS_CODE = FOLDER / "@vscode" / "jupyter-ipywidgets8@1.0.9" / "package" / "dist" / "ipywidgets.js"
# what Colab's own manager, and many another, extends
HTML_MANAGER = FOLDER / "@jupyter-widgets" / "html-manager@1.0.15" / "package" / "dist" / "embed-amd.js"


def fetch() -> None:
    """Get what is not here yet."""
    for bundle in (VS_CODE, HTML_MANAGER):
        if bundle.exists():
            continue
        folder = bundle.parents[2]
        folder.mkdir(parents=True, exist_ok=True)
        name = folder.relative_to(FOLDER).as_posix()
        hatch_build.npm("pack", "--silent", "--pack-destination", str(folder), name)
        (archive,) = folder.glob("*.tgz")
        with tarfile.open(archive) as files:
            files.extractall(folder, filter="data")
        archive.unlink()


if __name__ == "__main__":
    fetch()
