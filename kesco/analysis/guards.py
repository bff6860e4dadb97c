"""Which pointers that came into a function must be compared as the program runs: ``guards_of(…)``.

In: a region, and the entry values whose distinctness is only assumed. Out: the region's guards, or why there can be
none. Apart from the walk, which assumes that such pointers lead to allocations of their own.

It refuses a pointer that changes before it could be compared: in the function itself, or, where calls move, in one that
it calls.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kesco.analysis.memory import Place
from kesco.ir import program as ir
from kesco.ir.access import Access, AccessMode, Buffer, BufferKind
from kesco.ir.flow import HOSTS_SIDE, Region, Role
from kesco.ir.volatiles import is_volatile_type


def entries_of(region: Region) -> set[Buffer]:
    """The allocations that stand for pointers as they were when a function was entered."""
    return {a.buffer for a in compared(region) if a.buffer.kind is BufferKind.ENTRY}


def compared(region: Region) -> list[Access]:
    """What movable work touches; not the host's side of copies that keep the host, if only they touch such memory."""
    every = [(s, a) for s in region.sites if s.role is Role.MOVABLE for a in s.accesses]
    inner = [a for s, a in every if s.held is None or a.mode != HOSTS_SIDE[s.held]]
    outside = any(a.buffer.kind in (BufferKind.ENTRY, BufferKind.SYMBOL) for a in inner)
    return [a for _, a in every] if outside else inner


def needs_names_of_callers(function: ir.Function, region: Region) -> bool:
    """Whether pointers must be compared that came into a caller, by names that mean nothing here, or another value."""
    entries = entries_of(region)
    return len(entries) > 1 and any(not b.key.startswith(f"entry:{function.key}:") for b in entries)


def guards_of(
    program: ir.Program, guarded: Mapping[str, Collection[frozenset[str]]], function: ir.Function, region: Region
) -> tuple[tuple[str, ...], str]:
    """The entry values to compare at run time, and why that is impossible, if it is.

    `guarded` has the variables and members that each name is made of.
    """
    accesses = compared(region)
    entries = entries_of(region)
    written = any(a.mode & AccessMode.WRITE for a in accesses)
    if not entries or not written:
        return (), ""
    if any(a.buffer.kind is BufferKind.SYMBOL and not _is_apart(a, region) for a in accesses):
        return (), "it uses device symbols beside pointers that come from outside and might point to them"
    names = sorted(b.name for b in entries if b.name in guarded)
    if len(entries) < 2 or not names:
        return (), ""
    if len(set(names)) != len(names):
        return (), f"two of its pointers that come from outside are both called {names[0]}"
    if len(names) < 2:
        return (), ""
    if not all(b.key.startswith(f"entry:{function.key}:") for b in entries if b.name in guarded):
        return (), "its pointers came into another function, by names that mean nothing here"
    moving = any(s.role is Role.MOVABLE and s.calls for s in region.sites)
    inside = _with_called(program, function) if moving else [function]
    changed = {name for one in inside for name in _changed_names(one)}
    watched = _volatile_names(program)
    for name in names:
        if any(steps & watched for steps in guarded[name]):
            return (), f"'{name}' is volatile, so reading it may be seen"
        if any(steps & changed for steps in guarded[name]):
            return (), f"'{name}' changes before it could be compared with its other pointers"
    return tuple(names), ""


def _is_apart(symbol: Access, region: Region) -> bool:
    """Whether no pointer that came in matters to a symbol: none leads to it, and nobody writes it by its name."""
    moving = (a for s in region.sites if s.role is Role.MOVABLE for a in s.accesses)
    return symbol.buffer.fixed and not any(a.buffer == symbol.buffer and AccessMode.WRITE in a.mode for a in moving)


def steps_of(guarded: Mapping[str, Collection[Place]]) -> dict[str, list[frozenset[str]]]:
    """The variables and members on the way to each place."""
    return {
        name: [frozenset((place.object.key, *map(str, place.path))) for place in places]
        for name, places in guarded.items()
    }


def _with_called(program: ir.Program, function: ir.Function) -> list[ir.Function]:
    """A function and all of the file's that it may call."""
    by_key = {f.key: f for f in program.functions}
    found, work = {function.key: function}, [function]
    while work:
        for node in ir.walk(work.pop().body):
            one = by_key.get(node.key) if isinstance(node, ir.Call) else None
            if one is not None and one.key not in found:
                found[one.key] = one
                work.append(one)
    return list(found.values())


def _volatile_names(program: ir.Program) -> set[str]:
    """Variables of the file and members that are volatile, as a whole or in their elements."""
    fields = ((one.name, one.type) for record in program.records.values() for one in record.fields)
    variables = ((one.key, one.type) for one, _ in program.globals)
    return {name for name, kind in (*fields, *variables) if is_volatile_type(kind)}


def _changed_names(function: ir.Function) -> set[str]:
    """Variables and fields that a function assigns or takes the address of."""
    found: set[str] = set()
    for node in ir.walk(function.body):
        targets: list[ir.Expr | None] = []
        if isinstance(node, (ir.Assign, ir.AddressOf)):
            targets = [node.target]
        elif isinstance(node, ir.Declare) and node.variable.type.shape is ir.Shape.REFERENCE:
            targets = [node.initial]
        elif isinstance(node, ir.Call):
            targets = [a for a, r in zip(node.arguments, node.references, strict=False) if r]
        for target in targets:
            if isinstance(target, ir.Name):
                found.add(target.variable.key)
            elif isinstance(target, ir.Select):
                found.add(target.member)
    return found
