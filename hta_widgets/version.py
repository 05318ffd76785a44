"""The version of this package; a test holds it to that of `pyproject.toml`."""

__version__ = "0.2.0"
