"""Jobs of many ranks: recorded ones with published slowdowns, and planted ones with a known cause."""
