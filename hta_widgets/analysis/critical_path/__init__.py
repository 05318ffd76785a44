"""The critical path: the chain of work and waiting that decides how long a window takes."""
