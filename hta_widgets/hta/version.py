"""The release of Holistic Trace Analysis whose names this package has; a test compares it with HTA's own."""

__version_tuple__ = (0, 6, 1)
__version__ = ".".join(str(part) for part in __version_tuple__)
