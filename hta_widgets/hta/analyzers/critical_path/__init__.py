"""The critical path graph of Holistic Trace Analysis, built on arrays."""
