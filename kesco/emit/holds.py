"""The lines by which tasks are held behind a part of a loop of a more urgent one: ``add_holds(…)``.

In: a function's schedule, and how the text names streams. Out: lines before and behind operations. Apart from the waits
because what is awaited is not the last execution of an operation, but one that only the running program knows.

1. Behind each execution of what others are held behind the program makes a mark. 2. Before what is held stands for how
many percent of the marks it waits. Where one of several executions in a loop is held, all of them are: a stream that
waits already does not wait again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kesco.emit.comments import who_waits
from kesco.emit.places import Rewrite, marks_of
from kesco.ir.flow import Site

Lines = dict[int, list[str]]  # operation → lines


def add_holds(
    lines: tuple[Lines, Lines], rewrite: Rewrite, by_operation: Mapping[int, list[Site]], name: str, first: int,
    stream_text: Callable[[list[Site]], str],
) -> None:  # fmt: skip
    """Add to the lines before and behind operations; `first` is the number of the function's first mark in the file."""
    before, after = lines
    sites, holds = rewrite.region.sites, rewrite.schedule.holds
    number = {operation: first + n for n, operation in enumerate(marks_of(rewrite))}
    for operation, part in number.items():
        who = who_waits({sites[one.target].label for one in holds if sites[one.mark].operation == operation})
        call = f"kesco_mark({name}->part[{part}], {stream_text(by_operation[operation])});"
        after.setdefault(operation, []).append(f"{call}  // kesco: {who.replace('for this', 'for a part of these')}")
    for hold in holds:
        operation = sites[hold.target].operation
        there = before.setdefault(operation, [])
        part = number[sites[hold.mark].operation]
        call = f"kesco_hold({name}->part[{part}], {hold.share}, {stream_text(by_operation[operation])});"
        if not any(line.startswith(call) for line in there):
            label, source = sites[hold.target].label, sites[hold.mark].label
            there.append(f"{call}  // kesco: {label} waits for {hold.share} % of {source} ({hold.why})")
