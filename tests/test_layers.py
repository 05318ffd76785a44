"""Imports only point down: files -> events -> answers -> pictures -> widgets (contract in pyproject.toml)."""

import pytest
from importlinter.cli import lint_imports

from tests.support import ROOT


def test_imports_only_point_down(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    # which would switch loggers off
    monkeypatch.setattr("importlinter.cli.logging_config.dictConfig", lambda _: None)
    exit_code = lint_imports(config_filename=str(ROOT / "pyproject.toml"), cache_dir=None)
    assert exit_code == 0, capsys.readouterr().out
