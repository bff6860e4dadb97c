"""Where values lead: the buffers behind a pointer, the memory behind a device symbol.

In: values of the interpreter, and what its objects are called. Out: buffers with offsets, or a value. What both
readings ask, that of regions and that of executions; each has names of its own for objects.
"""

from __future__ import annotations

from collections.abc import Callable

from kesco.analysis.host.engine import Engine
from kesco.analysis.host.values import Object, Pointer, Unknown, Value, scalar
from kesco.ir.access import UNKNOWN, Buffer

MANAGED = "the file has a __managed__ variable, which is an ordinary one to the host"
"""Why what leads to that memory is not known."""


def parts_of(value: Value, buffer: Callable[[Object], Buffer]) -> list[tuple[Buffer, int | None]]:
    """The buffers that a pointer may lead to, and where in them if that is known; a null pointer leads nowhere."""
    found: dict[tuple[Buffer, int | None], None] = {}
    atoms = scalar(value)
    for atom in atoms:
        if type(atom) is Pointer:
            exact = not atom.offset[0] and not atom.object.many
            found[buffer(atom.object), atom.offset[1] if exact else None] = None
        elif type(atom) is Unknown or atom:
            found[UNKNOWN, None] = None
    if not atoms:
        found[UNKNOWN, None] = None
    return list(found)


def of_symbol(engine: Engine, value: Value) -> Value:
    """A symbol's memory on the device, from the variable that stands for it on the host."""
    return frozenset(
        Pointer(engine.resource("symbol", one.object.name), one.offset)
        if type(one) is Pointer and one.object.kind == "global" else one
        for one in scalar(value)
    )  # fmt: skip
