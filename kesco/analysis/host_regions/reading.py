"""The regions of one host IR, walked as often as it takes: ``host_regions(program, ir_text, effects)``.

In: the parse, the IR, the kernels' effects. Out: a `Region` for each function of the text that launches. It is apart
from the walk because it says how often that is done: once in which no loop is counted, then, where loops turn a known
number of times, once more with sites for each trip. The first walk is the same whatever loops are to be counted, so
that who asks again hands it in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from kesco.analysis.alike import rolled
from kesco.analysis.following import not_followed, unkept
from kesco.analysis.host.leading import MANAGED
from kesco.analysis.host.models import Models
from kesco.analysis.host_regions import Walk, walked
from kesco.analysis.host_regions.counting import Counting
from kesco.analysis.host_regions.open_orders import OpenOrders
from kesco.analysis.host_regions.quiet import Quiet
from kesco.analysis.host_regions.texts import Texts
from kesco.analysis.releases import Watchers, mark_releases
from kesco.analysis.scratch import scratch_of, with_own
from kesco.ir import program as ir
from kesco.ir.effects import KernelEffects
from kesco.ir.flow import Region
from kesco.ir.kernels import Kernels
from kesco.ir.scratch import OWN
from kesco.llvm.canonical import canonical
from kesco.llvm.module import Module

_NOT_READ = {
    "per-thread-stream": "it is compiled for the per-thread default stream",
    "managed": MANAGED,
}


@dataclass(frozen=True, slots=True)
class FirstWalk:
    """All paths of a serial program with no loop counted, and of which text and question that is."""

    of: tuple[str, bool, tuple[int, int]]
    counting: Counting
    opened: OpenOrders
    walk: Walk


def host_regions(
    program: ir.Program,
    ir_text: str,
    effects: Mapping[str, KernelEffects],
    *,
    streams: bool = False,
    looks: bool = False,
    sizes: tuple[int, int] = (0, 0),
    rolling: bool = False,
    turning: Collection[int] = (),
    kernels: Callable[[], Kernels] = Kernels,
    known: list[FirstWalk] | None = None,
) -> tuple[Region, ...]:
    """The regions of all functions of the text that launch; `sizes` are the streams and events of kesco's prologue.

    With `rolling`, loops whose trips are alike are followed as loops, and in any case these `turning` ones.
    `kernels` says when asked what decides which bytes they touch. `known` has the first walk that was made of a serial
    program, and then this one's. `InputError` (K110) if LLVM cannot read the IR.
    """
    of, kept = (ir_text, looks, sizes), [] if known is None or streams else known
    first = next((k for k in kept if k.of == of and k.counting.texts.program is program), None)
    if first is None:
        texts = Texts(program, Module(canonical(ir_text, "host", sroa=True)))
        counting, opened = Counting(texts), OpenOrders(texts)
        opened.find(Quiet(texts, Models()))
        first = FirstWalk(of, counting, opened, walked(texts, counting, opened, effects, streams, looks, sizes))
        kept[:] = [first]
    counting, opened, walk = first.counting.copy(), first.opened, first.walk
    seen = {name for name, _ in program.constructs}
    why = next((why for name, why in _NOT_READ.items() if name in seen), "")
    if not walk.refused and counting.settle(turning):
        walk = walked(counting.texts, counting, opened, effects, streams, looks, sizes)
    found = _read(walk, why, kernels)

    def again(loops: Collection[int]) -> tuple[Region, ...]:
        if all(known is None or number in loops for number, known in counting.trips.items()):
            return _read(first.walk, why, kernels)  # nothing was counted then
        other = replace(counting, trips=counting.trips | dict.fromkeys(loops))
        return _read(walked(counting.texts, other, opened, effects, streams, looks, sizes), why, kernels)

    return rolled(found, again) if rolling and not walk.refused else found


def _read(walk: Walk, why: str, kernels: Callable[[], Kernels]) -> tuple[Region, ...]:
    """The regions of what was walked."""
    paths, program = walk.paths, walk.texts.program
    if not paths.streams:  # what is promised to whoever watches the serial program says
        watchers = Watchers(frozenset(paths.watched), frozenset(paths.volatile), frozenset(paths.told), {})
        mark_releases(paths.activations, watchers)
    functions = [f for f in program.functions if f.here and f.key in paths.activations]
    why = why or walk.refused or paths.file_wide or unkept(paths.assumed)
    if paths.streams:
        follow = {f.key for f in functions} if OWN.encode() in program.text else set()
        scratch = scratch_of(program, paths.activations, kernels, follow, streams=True)
        regions = [with_own(walk.region(function, why), scratch) for function in functions]
    else:
        reasons = not_followed(program, paths.activations, why)
        scratch = scratch_of(program, paths.activations, kernels, {f.key for f in functions if not reasons[f.key]})
        regions = [walk.with_calls(function, why, reasons, scratch) for function in functions]
    return tuple(walk.with_linked(f, r) if f.name == "main" else r for f, r in zip(functions, regions, strict=True))
