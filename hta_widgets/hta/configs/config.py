"""HTA's logger, and settings from JSON files."""

from __future__ import annotations

import json
import logging
import logging.config
import sys
import warnings
from pathlib import Path
from typing import Any

from hta_widgets.hta.configs.default_values import DEFAULT_CONFIG_FILENAME

# Who wants to see messages configures logging; a library adds no output of its own.
logger: logging.Logger = logging.getLogger("hta_widgets")

package_path: Path = Path(__file__).resolve().parent.parent

ConfigValue = None | bool | int | float | str | dict[str, Any] | list[Any] | set[Any]

_FORMAT = "%(asctime)s - %(name)s - %(filename)s:L%(lineno)d - %(levelname)s - %(message)s"


def setup_logger(config_file: str = "logging.config") -> None:
    """Show the messages of this package, from INFO up.

    HTA calls this by itself whenever it reads settings; here it is for the notebook to call.

    Args:
        config_file: by default, messages go to the standard output in HTA's format. Any other name is a file
            for `logging.config.fileConfig`, which then decides about all loggers; ``""`` changes nothing.

    Raises:
        FileNotFoundError, KeyError: as `fileConfig`, where there is no such file.
    """
    if config_file != "logging.config":
        if config_file:
            logging.config.fileConfig(config_file, disable_existing_loggers=False)
    else:
        handler = logging.StreamHandler(sys.stdout)
        handler.setFormatter(logging.Formatter(_FORMAT))
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.INFO)


class HtaConfig:
    """Settings, merged from JSON files; later files override earlier ones.

    Args:
        config_file_path: a file of settings; one that does not exist is left aside with a warning.
        load_default_paths: read `get_default_paths` first.
    """

    def __init__(self, config_file_path: str | None = None, load_default_paths: bool = True) -> None:
        self.config: dict[str, Any] = {}
        self.config_file_paths: list[str] = []
        if load_default_paths:
            self.config_file_paths += [path for path in self.get_default_paths() if Path(path).is_file()]
        if config_file_path:
            if Path(config_file_path).is_file():
                self.config_file_paths.append(str(config_file_path))
            else:
                warnings.warn(f"no such file of settings: {config_file_path}", stacklevel=2)
        for path in self.config_file_paths:
            self.config.update(json.loads(Path(path).read_text()))

    @staticmethod
    def get_default_paths() -> list[str]:
        """Where settings are looked for: this package, ``~/.hta``, the current folder."""
        folders = (package_path, Path.home() / ".hta", Path.cwd())
        return [str(folder / DEFAULT_CONFIG_FILENAME) for folder in folders]

    def get_config_file_paths(self) -> list[str]:
        """The files that were read."""
        return self.config_file_paths

    def get_config(self, dot_path: str | None = None, default_value: Any = None) -> Any:
        """A setting such as ``"a.b.c"``; without a name all of them."""
        value: Any = self.config
        for key in dot_path.split(".") if dot_path else ():
            if not isinstance(value, dict) or key not in value:
                return default_value
            value = value[key]
        return value

    def show(self) -> None:
        print(json.dumps(self.config, indent=2))  # noqa: T201 - what the method is for

    @staticmethod
    def get_test_data_path(dataset: str) -> str:
        """``tests/data/<dataset>`` of the checkout that this package lies in."""
        return str(package_path.parent / "tests" / "data" / dataset)
