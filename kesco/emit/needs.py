"""What the prologue of a file must have: how many streams, and which parts.

In: the functions that are rewritten. Out: `Parts` and a number of streams. Apart from the places of lines, which say
nothing of the prologue.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kesco.emit.edits import Edit
from kesco.emit.following import taken_in
from kesco.emit.handles import is_lent, is_spread
from kesco.emit.places import Rewrite, filled, lines_before, marks_of
from kesco.emit.prologue import Parts
from kesco.emit.scratch import scratch_in
from kesco.ir import program as ir
from kesco.ir.flow import Region, Role, SiteKind, is_wait
from kesco.ir.schedule import joined_ranks
from kesco.ir.transfers import OWN
from kesco.ir.turns import Turns, in_flight, width

QUEUES = 8
"""Work queues of a process that asks for no more (CUDA_DEVICE_MAX_CONNECTIONS)."""
_IN_MAIN = "KescoMain kesco_main;  // kesco: for other files that call functions of this one, these are serial"
_TRANSFERS = (SiteKind.COPY, SiteKind.PREFETCH)
"""What gains by more of them."""


def streams_of(rewrites: Sequence[Rewrite]) -> int:
    """How many streams a file has: room for all turns of its loops that are in flight."""
    turns = _turns(rewrites)
    count = max(in_flight(turns) * width(turns), *(r.schedule.streams for r in rewrites))
    return -(-count // in_flight(turns)) * in_flight(turns) if turns else count


def _turns(rewrites: Sequence[Rewrite]) -> list[Turns]:
    return [one for r in rewrites for one in r.turns]


def is_closed(rewrites: Sequence[Rewrite]) -> bool:
    """Whether functions have streams that other files may come to, too, in ways that were not followed."""
    return any(r.region.trusting and (r.function.name != "main" or r.members) for r in rewrites)


def needed_parts(
    program: ir.Program, rewrites: Sequence[Rewrite], following: Collection[Region], stretches: int, replays: int,
    paces: int,
) -> Parts:  # fmt: skip
    """What the prologue must have for these functions of a file, and those that are `following` their callers."""
    sites = [(r, s) for r in rewrites for s in r.region.sites if s.role is Role.MOVABLE]
    own = {OWN[s.label.partition("#")[0]] for _, s in sites if s.held}
    later = any(s.later for _, s in sites)
    ranks = joined_ranks([r.schedule for r in rewrites], streams_of(rewrites))
    return Parts(
        guards=any(r.region.guards for r in rewrites),
        prefetches=any(r.prefetches for r in rewrites),
        copies=bool(own) or any(s.holds for _, s in sites),
        planes=OWN["cudaMemcpy2D"] in own,
        to_symbols=OWN["cudaMemcpyToSymbol"] in own,
        from_symbols=OWN["cudaMemcpyFromSymbol"] in own,
        stretches=stretches,
        replays=replays,
        sends=later or any(r.sends is not None for r in rewrites),
        pins=any(one.pins for r in rewrites for one in r.turns),
        fetches=any(r.fetches is not None for r in rewrites),
        urgent=() if ranks else tuple(sorted({stream for r in rewrites for stream in r.schedule.urgent})),
        ranks=ranks,
        leaves=any(r.watched for r in rewrites),
        memory=any(s.kind is SiteKind.ALLOC and s.number in r.schedule.as_dict() for r, s in sites),
        marks=sum(len(marks_of(r)) for r in rewrites),
        fills=any(filled(program, r) != program.operations for r in rewrites),
        calls=any(s.kind is SiteKind.CALL for _, s in sites),
        later=later,
        own=any(taken_in(program, one) for one in following),
        waits=any(is_wait(s) for one in following for s in one.sites),
        turns=in_flight(_turns(rewrites)),
        closed=is_closed(rewrites),
        blas=any(is_spread(program, r.region, r.schedule.as_dict()) for r in rewrites)
        or any(is_lent(program, one) for one in following),
        paces=paces,
        scratch=bool(scratch_in(rewrites)),
        queues=b"CUDA_DEVICE_MAX_CONNECTIONS" not in program.text
        and any(
            r.schedule.streams > QUEUES and s.kind in _TRANSFERS and s.number in r.schedule.as_dict() for r, s in sites
        ),
    )


def closed_main(program: ir.Program, rewrites: Sequence[Rewrite]) -> tuple[ir.Function, ...]:
    """``main``, where functions have streams only as it runs."""
    return tuple(f for f in program.functions if f.here and f.name == "main") if is_closed(rewrites) else ()


def main_edit(program: ir.Program, main: ir.Function) -> Edit:
    """The line in ``main`` from which on functions have streams."""
    assert isinstance(main.body, ir.Block)
    return lines_before(program.text, main.body.body[0].span.start, [_IN_MAIN])
