"""Which device memory may be allocated late and freed early: ``movable(program, regions)``, and the plan's view of it.

In: the serial program and its regions. Out: the allocations that move, with the places where they go. It is a stage of
its own because it looks at variables and statements; what order the new calls need, the stages behind find out from the
edited text, in which an allocation is an operation that writes its memory, as is its end.

1. A candidate is a local pointer, or an array of them, that one statement of a block (for an array a loop over it)
allocates and a later one of the same block frees, and that is otherwise only handed to kernels, copies and memsets. So
no other name for the memory exists, and nobody sees its value. 2. It is allocated before the first statement between
the two that mentions it, and freed behind the last. 3. Its size must have the same value there: integers that nothing
changes. 4. The peak cannot rise: all that moves in a function is allocated before any of it is freed, so that the
serial program has it all at once, and a part of a life is no longer than the life; and nobody allocates while some of
it is freed already (`peak`). One block of a function has this property; others are left alone.

It refuses memory of a program that asks how much there is or uses memory pools itself, lives with code in between that
is not seen, and what is known to be small: that is not worth a call between launches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kesco.ir import program as ir
from kesco.ir.access import Access, AccessMode, Buffer, BufferKind
from kesco.ir.failures import may_return
from kesco.ir.flow import Region, Role, Site, SiteKind
from kesco.ir.lifetimes import Moved
from kesco.lifetimes.peak import may_allocate, may_keep
from kesco.lifetimes.statements import is_stable, is_stable_loop, keeps_its_meaning, statement_of
from kesco.source import Span

_SMALL = 1 << 25  # bytes, below which a constant size is not worth it
_TAKES_POINTERS = {"cudaMemcpy", "cudaMemcpyAsync", "cudaMemset", "cudaMemsetAsync"}
_LOOKS_AT_MEMORY = re.compile(
    rb"\bcu(?:da)?(?:MemGetInfo|PointerGetAttribute|Malloc\w*Async|MallocFromPool|Mem\w*Pool|FreeAsync|DeviceGetMem|"
    rb"DeviceSetMem|DeviceGetDefaultMem|MemGetAddressRange|Ipc|\w*Peer)"
)


def movable(program: ir.Program, regions: Sequence[Region]) -> tuple[Moved, ...]:
    """The allocations that may move, function by function in the order of the text."""
    if _LOOKS_AT_MEMORY.search(program.text):
        return ()
    found: list[Moved] = []
    for region in regions:
        function = next(f for f in program.functions if f.here and f.span == region.span)
        if not region.serial_because and not function.template:
            blocks = [_in_block(program, function, region, block) for block in _blocks(function.body)]
            found += sorted(blocks, key=len)[-1] if blocks else []
    return tuple(found)


def all_planned(again: Sequence[Region], regions: Sequence[Region], moves: Sequence[Moved]) -> tuple[Region, ...]:
    """The regions of the edited text as they are planned; `regions` are those of the serial text, in the same order.

    Functions are no part of each other where one is called within a life: what returns from one call of it seems to
    come out behind any other one, where the memory may not be there.
    """
    cut = {
        m.function
        for region in regions
        for m in moves
        if m.function == region.span
        and any(s.kind is SiteKind.CALL and m.allocates.start < s.span.start < m.frees.start for s in region.sites)
    }
    whole = [r.linked is None or cut.isdisjoint((r.span, *(span for _, span in r.linked.members))) for r in regions]
    return tuple(as_planned(one if kept else replace(one, linked=None)) for one, kept in zip(again, whole, strict=True))


def as_planned(region: Region) -> Region:
    """The region of the edited text in which the new calls may go to any stream, and the old ones only wait."""
    if not any(s.label.startswith("cudaMallocAsync") for s in region.sites):
        return region
    buffers = {a.buffer for s in region.sites for a in s.accesses}
    made: dict[int, Buffer] = {}
    for site in (s for s in region.sites if s.kind is SiteKind.ALLOC):
        trip = ",".join(f"{i.loop}={i.value}" for i in site.iterations)  # as buffers of unrolled loops are named
        for buffer in (b for b in buffers if b.key.startswith(f"alloc:{site.operation}:")):
            if buffer.key.rpartition(":")[2] == trip:
                made[site.number] = buffer
    ours = {b.key for b in made.values()}

    def planned(site: Site) -> Site:
        keys = {a.buffer.key for a in site.accesses}
        if site.kind is SiteKind.ALLOC and site.number in made:
            access = Access(made[site.number], AccessMode.WRITE, "alloc")
            label = f"allocation of {made[site.number].name}"
            return replace(site, label=label, role=Role.MOVABLE, accesses=(access,), note="", acts=True)
        if site.kind is SiteKind.FREE and keys and keys <= ours:
            if site.acts:  # cudaFree
                return replace(site, role=Role.DEVICE_SYNC, accesses=())
            return replace(site, label=f"end of {site.accesses[0].buffer.name}", role=Role.MOVABLE, note="", acts=True)
        return site

    linked = as_planned(region.linked) if region.linked is not None else None
    return replace(region, sites=tuple(map(planned, region.sites)), linked=linked)


def _blocks(body: ir.Stmt) -> Iterator[tuple[ir.Stmt, ...]]:
    """The statements of each block, one by one; those of a switch are none."""
    for node in ir.walk(body):
        if isinstance(node, ir.Block) and not node.declares:
            flat: list[ir.Stmt] = []
            for one in node.body:
                flat.extend(one.body if isinstance(one, ir.Block) and one.declares else (one,))
            if not any(isinstance(s, ir.Case) for s in flat):
                yield tuple(flat)


def _in_block(program: ir.Program, function: ir.Function, region: Region, block: tuple[ir.Stmt, ...]) -> list[Moved]:
    """What may move in one block, all of it allocated before any of it is freed."""
    found: list[tuple[int, int, Moved]] = []
    for index, statement in enumerate(block):
        for call in _calls(statement, "cudaMalloc"):
            one = _candidate(program, function, region, block, index, call)
            if one is not None:
                found.append((index, *one))
    while found:  # the serial program has them all at once, and allocates nothing before all of them are free
        last_made, first_freed = max(found, key=lambda f: f[0]), min(found, key=lambda f: f[1])
        end = max(f[1] for f in found)
        if last_made[0] < first_freed[1] and not may_allocate(program, block[first_freed[1] : end + 1]):
            break
        found.remove(first_freed)
    if found and may_keep(function, block[min(f[0] for f in found) : max(f[1] for f in found) + 1]):
        return []
    return [moved for _, _, moved in found]


def _candidate(
    program: ir.Program, function: ir.Function, region: Region, block: tuple[ir.Stmt, ...], at: int, call: ir.Call
) -> tuple[int, Moved] | None:
    """One allocation of a block: the position of the statement that frees it, and where it goes."""
    target = ir.bare(call.arguments[0]) if len(call.arguments) == 2 else None
    pointer = ir.bare(target.target) if isinstance(target, ir.AddressOf) else None
    variable = _owner(pointer, block[at])
    if variable is None or not is_stable(function, call.arguments[1]):
        return None
    freed = [(n, c) for n, s in enumerate(block) for c in _calls(s, "cudaFree") if _mentions(c, variable)]
    if len(freed) != 1 or freed[0][0] <= at:
        return None
    end, free = freed[0]
    if _owner(ir.bare(free.arguments[0]), block[end]) != variable or not _alike(program, block[at], block[end]):
        return None
    allowed = sum(_handed_on(function.body, variable))
    if sum(_is(n, variable) for n in ir.walk(function.body)) != allowed + 2:
        return None
    using = [n for n in range(at + 1, end) if any(_is(node, variable) for node in ir.walk(block[n]))]
    inside = sum(_is(node, variable) for n in using for node in ir.walk(block[n]))
    if not using or inside != allowed or not _all_seen(region, block[at].span, block[end].span):
        return None
    called = function.name != "main"
    texts = tuple(statement_of(program, block[n], one, called=called) for n, one in ((at, call), (end, free)))
    buffers = _buffers(region, variable, call)
    if texts[0] is None or texts[1] is None or not buffers:
        return None
    if any(may_return(program, function, block[n]) for n in (at, end)):
        return None
    if not all(is_stable_loop(function, block[n]) for n in (at, end)):
        return None
    sizes = [buffer.bytes for buffer in buffers]
    if any((size or _SMALL) < _SMALL for size in sizes):
        return None
    size = program.text[call.span.start : call.span.end].rpartition(b",")[2].strip().removesuffix(b")").decode()
    first, behind = block[using[0]].span.start, block[using[-1] + 1].span.start
    ways = (
        (texts[0], block[at + 1 : using[0]], texts[0].end, first),
        (texts[1], block[using[-1] + 1 : end], behind, texts[1].start),
    )
    for text, between, start, stop in ways:
        if not keeps_its_meaning(program, between, program.text[text.start : text.end], start, stop, variable.name):
            return None
    moved = Moved(function.span, variable.name, call.span, texts[0], free.span, texts[1], first, behind, size, sizes[0])
    return end, moved


def _owner(pointer: ir.Expr | None, statement: ir.Stmt) -> ir.Variable | None:
    """The local pointer, or array of pointers all of which a loop goes through, that an expression is of."""
    element = isinstance(pointer, ir.Subscript)
    if isinstance(pointer, ir.Subscript):
        counter, loop = ir.bare(pointer.index), statement
        pointer = _array(pointer)
        header = loop.before[0] if isinstance(loop, ir.Loop) and len(loop.before) == 1 else None
        if not isinstance(header, ir.Declare) or not _is(counter, header.variable):
            return None
    if not isinstance(pointer, ir.Name) or pointer.variable.scope is not ir.Scope.LOCAL:
        return None
    shape: ir.Type | None = pointer.variable.type
    if element and shape is not None:
        shape = shape.element if shape.shape is ir.Shape.ARRAY else None
    if shape is None or shape.shape is not ir.Shape.POINTER or shape.restrict:
        return None
    return pointer.variable


def _array(element: ir.Subscript) -> ir.Expr:
    base = element.base
    while isinstance(base, (ir.Cast, ir.Decay)):
        base = base.operand if isinstance(base, ir.Cast) else base.array
    return base


def _alike(program: ir.Program, made: ir.Stmt, freed: ir.Stmt) -> bool:
    """Whether the same loop header is around both statements, or none."""
    loops = [s for s in (made, freed) if isinstance(s, ir.Loop) and not s.tested_after]
    headers = {b" ".join(program.text[s.span.start : s.body.span.start].rstrip(b" {").split()) for s in loops}
    around = [isinstance(s, ir.Loop) and not s.tested_after and bool(s.before) for s in (made, freed)]
    return not any(around) or (all(around) and len(headers) == 1)


def _buffers(region: Region, variable: ir.Variable, call: ir.Call) -> list[Buffer]:
    """The allocations of a call, if each has a name of its own, which no other memory has."""
    known = {a.buffer for s in region.sites for a in s.accesses}
    found = sorted(b for b in known if b.key.startswith(f"alloc:{call.operation}:"))
    names = {b.name for b in found}
    single = names == {variable.name}
    every = bool(found) and all(re.fullmatch(re.escape(variable.name) + r"\[\d+\]", name) for name in names)
    unique = len(names) == len(found) == sum(b.name in names for b in known)
    of_device = all(b.kind is BufferKind.DEVICE for b in found)
    return found if (single or every) and unique and of_device else []


def _calls(statement: ir.Stmt, name: str) -> list[ir.Call]:
    """The calls of an API function that stand in a statement by itself; none in one with loops and branches inside."""
    found = [n for n in ir.walk(statement) if isinstance(n, ir.Call) and n.name == name and n.operation >= 0]
    return found if len(found) == 1 else []


def _is(node: ir.Expr | ir.Stmt, variable: ir.Variable) -> bool:
    return isinstance(node, ir.Name) and node.variable.key == variable.key


def _mentions(node: ir.Expr | ir.Stmt, variable: ir.Variable) -> bool:
    return any(_is(one, variable) for one in ir.walk(node))


def _handed_on(node: ir.Expr | ir.Stmt, variable: ir.Variable, inside: bool = False) -> Iterator[bool]:
    """True for each mention whose value goes to the device's work and nowhere else."""
    if _is(node, variable):
        yield inside and variable.type.shape is ir.Shape.POINTER
    elif isinstance(node, ir.Subscript) and _is(_array(node), variable):
        yield inside and variable.type.shape is ir.Shape.ARRAY
        yield from _handed_on(node.index, variable)
    elif isinstance(node, ir.Launch):
        for argument in node.arguments:
            yield from _handed_on(argument, variable, True)
    elif isinstance(node, ir.Call):
        for argument in node.arguments:
            yield from _handed_on(argument, variable, node.name in _TAKES_POINTERS)
    else:
        passes = inside and isinstance(node, (ir.Cast, ir.Binary))
        for child in ir.children(node):
            yield from _handed_on(child, variable, passes)


def _all_seen(region: Region, begin: Span, end: Span) -> bool:
    """Whether nothing between two statements runs unseen code, changes the device or could keep the pointer in memory.

    A kernel that leaves a pointer where another one may find it counts as one that touches unknown memory.
    """
    for site in (s for s in region.sites if begin.start <= s.span.start < end.end):
        keeps = site.kind in (SiteKind.KERNEL, SiteKind.LIBRARY, SiteKind.CALL)
        if keeps and any(a.buffer.kind is BufferKind.UNKNOWN for a in site.accesses):
            return False
        if site.foreign or (site.role is Role.JOIN and site.kind is SiteKind.SYNC):
            return False
    return True
