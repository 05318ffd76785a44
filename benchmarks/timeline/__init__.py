"""The timeline beside Perfetto's: what opening it costs, and a frame while one pans and zooms.

`viewers` opens the same recording in both, `frames` and `answers` measure what is then on the page.
"""
