"""What stands behind code that is not seen, which may have changed the device and have streams of its own.

In: a program and a region, and the sites behind which streams are fetched in any case. Out: the sites in front of which
they are fetched again, whatever has been waited for (`fetched_again`), and the lines (`fence_lines`).

A fetch counts in the block where it stands: that the block is executed the region may know, but not who reads the text.
"""

from __future__ import annotations

from collections.abc import Collection

from kesco.ir import program as ir
from kesco.ir.flow import Region, Role, Site
from kesco.source import Span


def fetched_again(program: ir.Program, region: Region, others: Collection[int]) -> frozenset[int]:
    """The movable sites that unseen code may lead to, with none of these, and none of `others`, in between."""
    blocks = _blocks(program, region)
    unseen = {site.number for site in region.sites if site.foreign and site.role is Role.JOIN}
    found: set[int] = set()
    work: list[tuple[int, Span | None]] = [(n, None) for one in unseen for n in region.successors[one]]
    seen: set[tuple[int, Span | None]] = set()
    while work:
        number, fetched = work.pop()
        if (number, fetched) in seen or number in unseen:
            continue
        seen.add((number, fetched))
        site = region.sites[number]
        if (site.role is Role.MOVABLE or number in others) and not _is_in(site, fetched):
            if site.role is Role.MOVABLE:
                found.add(number)
            fetched = _around(program, site, blocks)
        work += [(n, fetched) for n in region.successors[number]]
    return frozenset(found)


def _blocks(program: ir.Program, region: Region) -> list[Span]:
    """All that is executed as a whole or not at all: blocks, bodies of loops and branches, but none of a macro's.

    What begins where its loop or branch begins is a macro's: `do { … } while (0)`.
    """
    found: list[Span] = []
    for function in program.functions:
        if any(function.span == one for one in (region.span, *(span for _, span in region.members))):
            for node in ir.walk(function.body):
                if isinstance(node, ir.Block) and program.text[node.span.start : node.span.start + 1] == b"{":
                    found.append(node.span)
                elif isinstance(node, (ir.Loop, ir.If)):
                    inside = (node.body,) if isinstance(node, ir.Loop) else (node.then, node.other)
                    found += [one.span for one in inside if one is not None and one.span.start > node.span.start]
    return found


def _around(program: ir.Program, site: Site, blocks: Collection[Span]) -> Span | None:
    """The innermost block around a site's statement."""
    statement = program.operations[site.operation].statement if site.operation >= 0 else None
    at = site.span.start if statement is None else statement.start
    return min((b for b in blocks if b.start <= at < b.end), key=lambda b: b.end - b.start, default=None)


def _is_in(site: Site, block: Span | None) -> bool:
    return block is not None and block.path == site.span.path and block.start <= site.span.start < block.end


def fence_lines(name: str, call: str) -> tuple[str, str, str]:
    """The streams are fetched again by a call; and the default stream waits for blocking streams of others."""
    return (
        f"{name} = {call};  // kesco: code not seen here may have changed the device",
        f"cudaEventRecord({name}->tail[0], {name}->stream[0]);",
        f"cudaStreamWaitEvent(cudaStreamLegacy, {name}->tail[0], 0);"
        "  // kesco: streams of code not seen here come first",
    )
