"""The timeline beside Perfetto's: what opening it costs, and a frame while one pans and zooms.

    python -m benchmarks.timeline [trace.json] [--megabytes N] [--rounds N] [--perfetto FOLDER]

run from the project's root. `viewers` opens the same trace in both, `frames` measures what is then on the
page.
"""
