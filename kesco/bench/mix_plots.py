"""Mixes as a picture in the shape of the KeSCo paper's figure 13; matplotlib draws, as SVG.

For each mix a group of bars for each task and one for all: how many times faster than the programs started together.
A dotted line says where perfect overlap would be: the task alone, and for all the longest one alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import Any

from kesco.bench.mix_results import Shared
from kesco.bench.mixes import SCHEMES, Mix
from kesco.bench.plots import NO_MATPLOTLIB
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import ToolchainError

_SHOWN = ("mps", "kesco", "mps-kesco", "zones", "zones-fair", "threads", "one-thread")
_COLOURS = ("#b0b0b0", "#d8c8a0", "#8a8a8a", "#4878a8", "#c0392b", "#6aa84f", "#b6d7a8")


def plot(shared: Shared, mixes: Sequence[Mix]) -> str:
    """The picture as SVG text; raises `ToolchainError` (K525) without matplotlib."""
    try:
        import matplotlib

        matplotlib.use("svg")
        matplotlib.rcParams["svg.hashsalt"] = "kesco"  # the same data gives the same bytes
    except ImportError:
        what = "the plots need matplotlib, which is not installed"
        raise ToolchainError(
            Diagnostic(NO_MATPLOTLIB, Severity.ERROR, what, help="pip install 'kesco[bench]'")
        ) from None
    from matplotlib.figure import Figure

    there = [mix for mix in mixes if any(o.mix == mix.name and o.times for o in shared.outcomes)]
    figure = Figure(figsize=(7 * max(len(there), 1), 4), layout="constrained")
    for number, mix in enumerate(there, 1):
        axes = figure.add_subplot(1, len(there), number)
        _bars(axes, shared, mix)
        if number == 1:
            axes.set_ylabel("times faster than started together")
            figure.legend(frameon=False, ncols=2, fontsize="small", loc="outside upper center")
    text = StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _bars(axes: Any, shared: Shared, mix: Mix) -> None:
    shown = [name for name in _SHOWN if (one := shared.find(mix.name, name)) is not None and one.times]
    width = 0.8 / max(len(shown), 1)
    groups = [*(task.name for task in mix.tasks), None]
    for number, scheme in enumerate(shown):
        heights = [shared.speed(mix.name, scheme, task=task) or 0.0 for task in groups]
        places = [place + (number - (len(shown) - 1) / 2) * width for place in range(len(groups))]
        axes.bar(places, heights, width, label=SCHEMES[scheme].title, color=_COLOURS[_SHOWN.index(scheme)])
    for place, task in enumerate(groups):
        together = shared.task(mix.name, "baseline", task) if task else shared.overall(mix.name, "baseline")
        bound = shared.bound(mix.name, task)
        if together and bound:
            axes.hlines(together / bound, place - 0.45, place + 0.45, color="black", linestyle="dotted")
    axes.axhline(1.0, color="black", linewidth=0.6)
    axes.set_xticks(range(len(groups)), [*(f"{t.name} ({t.priority})" for t in mix.tasks), "all"])
    axes.set_title(mix.name, fontsize="medium", loc="right")
    axes.spines[["top", "right"]].set_visible(False)
