"""The command line: the answers of the library for terminals, scripts and CI."""

from hta_widgets.cli.run import main

__all__ = ["main"]
