"""The notebook widgets: the selection, the parts, and the explorer that composes them."""
