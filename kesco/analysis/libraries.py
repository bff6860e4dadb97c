"""Calls of CUDA's libraries (cuBLAS, cuFFT, cuRAND) → sites.

In: a call, its entry in ``frontend/resources/library_api.toml`` and the state. Out: its site, with what its arguments
point to. Apart from the runtime's calls because a library works on the stream of a handle: what it does is known only
where the handle is.

1. A handle that a library made here, and that no unseen code was given, works on the default stream as long as the
program names no function that sets a stream. 2. Such a call is a join: all work comes before it and it comes before
what follows, as its work is on the default stream. It may also do nothing at all, so it never counts as work that
others could rely on. 3. Every other call of a library stays opaque. What moves is found in the host's IR
(`host_regions.libraries`): here it only matters that a stream of kesco's own is no stream of the program's.
"""

from __future__ import annotations

from kesco.analysis.containers import Containers
from kesco.analysis.memory import NOTHING, Object, ObjectKind, Place, Value, pointer
from kesco.analysis.state import State
from kesco.frontend.library_table import LibraryCall
from kesco.ir import program as ir
from kesco.ir.access import AccessMode
from kesco.ir.flow import Role, SiteKind

_HANDLE = "library:"


class Libraries(Containers):
    """Walks calls of libraries; other calls are left to the subclass."""

    _sets_stream: bool | None = None

    def is_followed(self, state: State, call: ir.Call, entry: LibraryCall) -> bool:
        """Whether the call works on the default stream for certain, on what the table says."""
        if self._sets_stream is None:
            nodes = (
                n for f in self.program.functions for n in ir.walk(f.body) if isinstance(n, (ir.Call, ir.FunctionName))
            )
            self._sets_stream = any("SetStream" in node.name and not _stays_in_order(node) for node in nodes)
        if entry.kind == "set_stream":
            return _stays_in_order(call)
        if self._sets_stream or entry.holding or self.gives_function(call):
            return False
        if entry.kind == "create":
            return True
        handle = call.arguments[0]
        if any(isinstance(n, (ir.Call, ir.Assign, ir.Unknown)) for n in ir.walk(handle)):
            return False
        value = self.evaluate(state.fork(), handle)
        made = {p.object for p in value.places}
        followed = bool(made) and not value.unknown and all(one.key.startswith(_HANDLE) for one in made)
        return followed and not made & (self.escaped | state.store.clobbered)

    def gives_function(self, call: ir.Call) -> bool:
        """Whether one of the arguments is a function, which a library could call."""
        return any(isinstance(n, (ir.FunctionName, ir.Unknown)) for a in call.arguments for n in ir.walk(a))

    def library(self, state: State, call: ir.Call, entry: LibraryCall) -> Value:
        """A call that is followed."""
        if entry.kind == "set_stream":
            return NOTHING
        values = [v.without_shape() if v.fields else v for v in self.argument_values(state, call)]
        site = self.site(state, entry.name, SiteKind.LIBRARY, Role.JOIN, call.operation, call.span)
        for indexes, mode in ((entry.all_read, AccessMode.READ), (entry.all_written, AccessMode.WRITE)):
            for index in indexes:
                self.access(state, site, values[index], mode)
        if entry.kind == "create":
            made = self.fresh(f"{_HANDLE}{call.operation}", entry.name)
            handle = Object(made.key, entry.name, ObjectKind.HANDLE, many=made.many)
            self.assign(state, values[0].places, values[0].unknown, pointer(Place(handle)))
        return NOTHING


def _stays_in_order(call: ir.Expr | ir.Stmt) -> bool:
    """Whether a stream that is set is the default stream, or one of kesco's, whose order is proven elsewhere."""
    if not isinstance(call, ir.Call) or not call.arguments:
        return False
    stream = call.arguments[-1]
    while isinstance(stream, ir.Cast):
        stream = stream.operand
    return is_of_kesco(stream) or stream == ir.Constant(0)


def is_of_kesco(argument: ir.Expr) -> bool:
    """Whether it is a stream of kesco's own, which nothing that the program evaluates changes."""
    return any(
        isinstance(node, ir.Name) and node.variable.type.spelling.endswith("KescoStreams *")
        for node in ir.walk(argument)
    )
