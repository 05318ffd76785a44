"""Everything known about one event, one gap of a stream, or one stretch of time."""
