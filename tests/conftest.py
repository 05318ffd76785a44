"""Every test run has its own trace cache: the user's is neither read nor written."""

import os
import shutil
import tempfile

import pytest


def pytest_configure(config: pytest.Config) -> None:
    # An environment variable and not a fixture: notebook kernels started by nbval and JupyterLab inherit it.
    directory = tempfile.mkdtemp(prefix="hta_widgets-test-cache-")
    os.environ["HTA_WIDGETS_CACHE"] = directory
    config.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))
