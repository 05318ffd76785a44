"""Files -> tables of events: finding, reading, scanning and caching trace files."""
