"""Results as tables for the terminal and for the documentation; nothing is printed here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from kesco.bench.measure import Setting
from kesco.bench.pairs import ROUNDS, Ratio, ratio
from kesco.bench.results import Results, geometric_mean, median, spread
from kesco.bench.suite import STYLES, VARIANTS

_OTHERS = tuple(name for name in VARIANTS if name != "serial")


def tables(results: Results) -> Iterator[Table]:
    """One table for each memory style: a line a setting, then the geometric means by size.

    Where variants took turns in one process, the ratios of rounds, and one line a variant.
    """
    for style in STYLES:
        there = [s for s in results.settings() if s.style == style]
        if there:
            yield (_paired if ROUNDS in results.environment else _table)(results, style, there)


def _table(results: Results, style: str, there: Sequence[Setting]) -> Table:
    shown = [v for v in _variants(results) if any(results.find(s, v) for s in there)]
    table = Table(title=f"{STYLES[style].title}: times faster than serial", title_justify="left")
    for name in ("workload", "size", "block"):
        table.add_column(name)
    table.add_column("serial, ms", justify="right")
    table.add_column("±", justify="right")
    for name in (*shown, "kesco / async"):
        table.add_column(name, justify="right")
    for setting in there:
        serial = results.find(setting, "serial")
        table.add_row(
            setting.workload,
            setting.size,
            str(setting.block),
            f"{median(serial):.4g}" if serial else "-",
            f"{spread(serial):.0%}" if serial else "-",
            *(_ratio(results.speedup(setting, name)) for name in shown),
            _ratio(results.speedup(setting, "kesco", over="async")),
        )
    table.add_section()
    for size in dict.fromkeys(s.size for s in there):
        these = [s for s in there if s.size == size]
        table.add_row(
            "geometric mean",
            size,
            "",
            "",
            "",
            *(_ratio(results.mean_speedup(these, name)) for name in shown),
            _ratio(results.mean_speedup(these, "kesco", over="async")),
        )
    return table


def _paired(results: Results, style: str, there: Sequence[Setting]) -> Table:
    table = Table(title=f"{STYLES[style].title}: times faster than serial, round by round", title_justify="left")
    for name in ("workload", "size", "block", "variant"):
        table.add_column(name)
    for name in ("ms", "times faster", "95 % interval", "processes"):
        table.add_column(name, justify="right")
    found: dict[str, list[Ratio]] = {}
    for setting in there:
        for variant in _variants(results):
            row, one = results.find(setting, variant), ratio(results, setting, variant)
            if row is None or one is None:
                continue
            found.setdefault(variant, []).append(one)
            where = (setting.workload, setting.size, str(setting.block), variant)
            least, most = min(one.processes), max(one.processes)
            apart = f"{least:.3f} to {most:.3f}" if len(one.processes) > 1 else ""
            inside = f"{one.low:.3f} to {one.high:.3f}"
            table.add_row(*where, f"{median(row):.4g}", f"{one.median:.3f}", inside, apart)
    table.add_section()
    for variant, all_ in found.items():
        mean = geometric_mean([one.median for one in all_])
        table.add_row("geometric mean", "", "", variant, "", f"{mean:.3f}", _sure(all_), "")
    return table


def _sure(found: Sequence[Ratio]) -> str:
    """How many of the settings are surely slower than serial, and surely faster."""
    slower, faster = sum(one.high < 1 for one in found), sum(one.low > 1 for one in found)
    return f"{slower} slower, {faster} faster"


def _variants(results: Results) -> list[str]:
    """The variants in the order of the suite, then those by number of streams."""
    found = dict.fromkeys(row.variant for row in results.rows)
    return [v for v in _OTHERS if v in found] + [v for v in found if v not in VARIANTS]


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def markdown(results: Results, style: str) -> str:
    """The workloads' speed-ups by size as a Markdown table: geometric means over the block sizes."""
    there = [s for s in results.settings() if s.style == style]
    shown = [v for v in _variants(results) if any(results.find(s, v) for s in there)]
    lines = [
        f"| workload | size | serial, ms | {' | '.join(shown)} | kesco / async |",
        "|---|---|---|" + "---|" * (len(shown) + 1),
    ]
    for size in dict.fromkeys(s.size for s in there):
        for workload in dict.fromkeys(s.workload for s in there):
            these = [s for s in there if (s.size, s.workload) == (size, workload)]
            times = geometric_mean([median(row) for s in these if (row := results.find(s, "serial"))])
            lines.append(_line(results, workload, size, "-" if times is None else f"{times:.4g}", these, shown))
        these = [s for s in there if s.size == size]
        lines.append(_line(results, "**mean**", size, "", these, shown))
    return "\n".join(lines) + "\n"


def _line(results: Results, name: str, size: str, time: str, these: Sequence[Setting], shown: Sequence[str]) -> str:
    ratios = [_ratio(results.mean_speedup(these, v)) for v in shown]
    against = _ratio(results.mean_speedup(these, "kesco", over="async"))
    return f"| {name} | {size} | {time} | {' | '.join(ratios)} | {against} |"


def error_table(found: Sequence[tuple[Setting, str, float, float]]) -> Table:
    """What the model says beside what was measured."""
    table = Table(title="the model beside the measurement, milliseconds", title_justify="left")
    for name in ("workload", "style", "size", "block", "variant"):
        table.add_column(name)
    for name in ("model", "measured", "error"):
        table.add_column(name, justify="right")
    for setting, variant, model, measured in found:
        where = (setting.workload, setting.style, setting.size, str(setting.block), variant)
        table.add_row(*where, f"{model:.4g}", f"{measured:.4g}", f"{model / measured - 1:+.0%}")
    return table
