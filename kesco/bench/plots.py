"""Results as pictures in the shape of the KeSCo paper's figures 8, 9, 11 and 12; matplotlib draws, as SVG.

1. speed-up by scheme (figure 8), and with prefetching (9): a group of bars for each workload and one for the mean;
2. speed-up by input size (11): a line for each scheme, the mean over the workloads;
3. speed-up by number of streams (12): a line for each workload.

A picture is drawn only where its measurements are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import StringIO
from typing import Any

from kesco.bench.measure import Setting
from kesco.bench.results import Results
from kesco.bench.suite import STYLES, VARIANTS
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import ToolchainError

NO_MATPLOTLIB = "K525"
_SCHEMES = ("sync", "kesco-1", "async", "graph", "kesco")
_COLOURS = {"sync": "#b0b0b0", "kesco-1": "#d8c8a0", "async": "#4878a8", "graph": "#6aa84f", "kesco": "#c0392b"}


def plots(results: Results) -> Iterator[tuple[str, str]]:
    """The pictures' names and SVG texts; raises `ToolchainError` (K525) without matplotlib."""
    try:
        import matplotlib

        matplotlib.use("svg")
        matplotlib.rcParams["svg.hashsalt"] = "kesco"  # the same data gives the same bytes
    except ImportError:
        raise ToolchainError(
            Diagnostic(
                NO_MATPLOTLIB,
                Severity.ERROR,
                "the plots need matplotlib, which is not installed",
                help="pip install 'kesco[bench]'",
            )
        ) from None
    for style in STYLES:
        there = [s for s in results.settings() if s.style == style]
        for size in dict.fromkeys(s.size for s in there):
            these = [s for s in there if s.size == size]
            yield f"schemes-{style}-{size}", _picture(partial(_bars, results=results, these=these))
        if len({s.size for s in there}) > 1:
            yield f"sizes-{style}", _picture(partial(_by_size, results=results, there=there))
        if there and len(_stream_counts(results)) > 1:
            yield f"streams-{style}", _picture(partial(_by_streams, results=results, there=there))


def _picture(draw: Callable[[Any], None]) -> str:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    axes = figure.add_subplot()
    draw(axes)
    axes.axhline(1.0, color="black", linewidth=0.6)
    axes.set_ylabel("times faster than serial")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=6, fontsize="small", loc="upper left", bbox_to_anchor=(0, 1.12))
    text = StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _bars(axes: Any, results: Results, these: Sequence[Setting]) -> None:
    names = list(dict.fromkeys(s.workload for s in these))
    groups = [[s for s in these if s.workload == name] for name in names] + [list(these)]
    shown = [v for v in _SCHEMES if any(results.find(s, v) for s in these)]
    width = 0.8 / max(len(shown), 1)
    for number, variant in enumerate(shown):
        heights = [results.mean_speedup(group, variant) or 0.0 for group in groups]
        places = [place + (number - (len(shown) - 1) / 2) * width for place in range(len(groups))]
        axes.bar(places, heights, width, label=VARIANTS[variant].title, color=_COLOURS[variant])
    axes.set_xticks(range(len(groups)), [*names, "mean"])


def _by_size(axes: Any, results: Results, there: Sequence[Setting]) -> None:
    sizes = list(dict.fromkeys(s.size for s in there))
    for variant in (v for v in _SCHEMES if any(results.find(s, v) for s in there)):
        heights = [results.mean_speedup([s for s in there if s.size == size], variant) for size in sizes]
        axes.plot(sizes, heights, marker="o", label=VARIANTS[variant].title, color=_COLOURS[variant])


def _stream_counts(results: Results) -> list[int]:
    return sorted({row.streams for row in results.rows if row.variant == f"kesco-{row.streams}" and row.streams > 1})


def _by_streams(axes: Any, results: Results, there: Sequence[Setting]) -> None:
    counts = _stream_counts(results)
    for name in dict.fromkeys(s.workload for s in there):
        these = [s for s in there if s.workload == name]
        heights = [results.mean_speedup(these, f"kesco-{count}") for count in counts]
        axes.plot(counts, heights, marker="o", label=name)
    axes.set_xlabel("streams")
