"""Charts of frames: `spec` describes one, `marks` reduces a frame to what it shows, and three places draw it.

`plotly` makes figures, `svg` static pictures, and the front end (`js/src/charts`) interactive ones. A chart
knows a frame's columns and no analysis.
"""
