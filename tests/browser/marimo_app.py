"""The explorer in marimo: one cell shows it, another shows what is selected in it."""

import marimo

app = marimo.App(width="full")


@app.cell
def _():
    import marimo as mo

    from hta_widgets import TraceExplorer, examples

    return TraceExplorer, examples, mo


@app.cell
def _(TraceExplorer, examples, mo):
    explorer = TraceExplorer(examples.path("ddp_4ranks"), panels=["temporal_breakdown"])
    ranks, set_ranks = mo.state(())
    explorer.selection.observe(lambda change: set_ranks(change.new), "ranks")
    explorer
    return explorer, ranks


@app.cell
def _(explorer, mo, ranks):
    selected = ranks()
    mo.md(f"ranks {selected}: {len(explorer.events)} events of {sorted(set(explorer.events['rank']))}")
    return


if __name__ == "__main__":
    app.run()
