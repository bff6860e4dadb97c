"""Which published figures are of programs that kesco no longer makes so: ``stale(path, today)`` → what, and why.

In: a file of results, whose `plans` say what kesco had made of each program when it was measured (`plans`); and what it
makes today, by digest, which `regress` keeps. Out: the programs of stale figures. A figure of a program without a
recorded plan is stale, too: nobody knows what it is of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kesco.bench.mixes import PROCESSES, SCHEMES, STYLE, Mix
from kesco.bench.suite import FORMS, VARIANTS

UNKNOWN = "unknown"
"""What stands for a digest where a plan cannot be made again."""
_STREAMS = re.compile(r"kesco-\d+")


def stale(path: Path, today: Mapping[str, str], mixes: Iterable[Mix]) -> dict[str, str]:
    """For each stale program of a file, by its name, why it is; empty for files that rest on no plan of kesco's."""
    found = json.loads(path.read_text("utf-8"))
    recorded: dict[str, str] = found.get("plans", {})
    return {
        name: why
        for name in dict.fromkeys((*_of_rows(found.get("rows", ())), *_of_mixes(found.get("mixes", ()), mixes)))
        if (why := _why(recorded.get(name, ""), today.get(name, "")))
    }


def _why(recorded: str, today: str) -> str:
    digest, _, said = recorded.partition(": ")
    if not recorded:
        return "no plan was recorded"
    if digest == UNKNOWN:
        return said
    if not today:
        return "kesco's tree has no such program"
    return "" if digest == today else f"measured with {digest}, and today it is {today}"


def _of_rows(rows: Iterable[Mapping[str, object]]) -> Iterator[str]:
    for row in rows:
        setting, variant = row["setting"], str(row["variant"])
        assert isinstance(setting, dict)
        program = program_of(variant)
        if program in FORMS:
            yield f"{setting['workload']}/{setting['style']}/{program}"


def program_of(variant: str) -> str:
    """The program that a variant runs, also where its name says how many streams."""
    return VARIANTS["kesco" if _STREAMS.fullmatch(variant) else variant].program


def _of_mixes(outcomes: Iterable[Mapping[str, object]], mixes: Iterable[Mix]) -> Iterator[str]:
    known = {mix.name: mix for mix in mixes}
    for one in outcomes:
        mix, program = known[str(one["mix"])], SCHEMES[str(one["scheme"])].program
        if program not in PROCESSES:
            yield f"{mix.name}/{STYLE}/{program}"
        elif program != "serial":
            yield from (f"{task.program}/{STYLE}/{program}" for task in mix.tasks)
