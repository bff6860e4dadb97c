"""Calls of CUDA's libraries → sites with what they touch, on the stream of their handle.

In: the call, its entry of the table, the values of its arguments. Out: a site of the function that control is in.

1. Work with a handle that is known, and that no unseen code was given, goes to the stream that the handle has: in a
serial program the default stream, so that it may go to any other, where the text can say the handle once more. 2. It
also writes the handle's own workspace: two calls with one handle are in order; it only reads it where each stream has
one of its own, as kesco will see to in a serial program. 3. Numbers that it reads on the host it
reads at once; where it writes a result there, the host waits, and the call is a join. So is what makes, changes or ends
a handle. 4. Everything else joins all work, and may touch any memory; so may functions of the program's own that have
the names of a library's.

In a text that is read again, a stream of kesco's is no one else's: who is not known to follow it must find the handle
on the default stream. Where that is not so, nothing in the file is taken to be proven.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kesco.analysis.host.libraries import HANDLE, Handles, device_memory, handle_in, handles_in, held_by
from kesco.analysis.host.memory import State
from kesco.analysis.host.values import Object, Value, objects, scalar
from kesco.analysis.host_regions.activations import Activation
from kesco.analysis.host_regions.handles import handle_of
from kesco.analysis.host_regions.pointing import Pointing
from kesco.analysis.host_regions.watching import Watching
from kesco.analysis.region import ANY_SIZE, Draft
from kesco.frontend.library_table import UNKNOWN_HANDLE, LibraryCall, setter_of, shares
from kesco.ir import program as ir
from kesco.ir.access import UNKNOWN, AccessMode
from kesco.ir.flow import CURRENT, Handle, Region, Role, SiteKind

_OWN = "the workspace of its handle"


@dataclass(slots=True)
class Libraries:
    """Makes sites of calls of libraries."""

    pointing: Pointing
    _strange: frozenset[str] | None = None
    _setters: dict[int, tuple[int, Activation]] = field(default_factory=dict)  # by ids, which no others get

    @property
    def paths(self) -> Watching:
        """Where the sites go."""
        return self.pointing.paths

    def calls(self, name: str, entry: LibraryCall, values: list[Value], state: State) -> None:
        """A function of a library is called."""
        if entry.name in self._namesakes():
            self._opaque(name, values, state, "what it does is not visible")
            return
        if entry.kind in ("host", "describe", "set_stream", "pointer_mode"):
            return
        if entry.kind == "create":
            self.paths.site(state, entry.name, name, SiteKind.LIBRARY, Role.JOIN)
            return
        one = handle_in(state, values[0])
        stream = None if one is None else handle_of(self._handles(state).stream(one))
        if one is None or (stream is not None and not self.paths.streams):
            why = UNKNOWN_HANDLE if one is None else "its handle has a stream of the program's own"
            came_in = one is None and self.paths.generic and entry.kind == "work" and not entry.results
            self._opaque(name, values, state, why, lent=came_in and self._may_move(name))
        elif entry.kind == "work":
            self._work(name, entry, one, stream, values, state)
        else:
            self._touch_own(self.paths.site(state, entry.name, name, SiteKind.LIBRARY, Role.JOIN), one)
            if entry.kind == "setting":
                self._must_be_default(stream, name)

    def _namesakes(self) -> frozenset[str]:
        """The functions that are no library's, though they are called so."""
        if self._strange is None:
            every = (n for f in self.paths.texts.program.functions for n in ir.walk(f.body) if isinstance(n, ir.Call))
            self._strange = frozenset(n.name.removesuffix("_v2") for n in every if n.name and not n.standard)
        return self._strange

    def _handles(self, state: State) -> Handles:
        return Handles(self.paths.engine, state)

    def _opaque(self, name: str, values: list[Value], state: State, why: str, *, lent: bool = False) -> None:
        """It may do anything; `lent`: but with the handle that it is given, if it is put on the current stream."""
        self.reached({one for value in values for one in objects(value)}, name, state)
        draft = self.paths.join(state, name, foreign=not lent)
        if draft is not None:
            draft.touch(UNKNOWN, why, AccessMode.READ_WRITE)
            draft.note, draft.foreign, draft.lent = why, True, lent and draft.lent is not False
            self.paths.now.activation.lends = True

    def _work(
        self, name: str, entry: LibraryCall, one: Object, stream: Handle | None, values: list[Value], state: State
    ) -> None:
        on_host = self._handles(state).on_host(one)
        for index in entry.scalars if on_host else ():
            self._looks_at(values[index], state)
        waits = bool(entry.results) and on_host
        role = Role.MOVABLE if not waits and (stream is not None or self._may_move(name)) else Role.JOIN
        draft = self.paths.site(state, entry.name, name, SiteKind.LIBRARY, role, stream)
        if role is Role.JOIN or (draft is not None and draft.role is Role.JOIN):
            self._must_be_default(stream, name)
        elif stream is not None and (by := self._handles(state).set_by(one)) != {self._setter()}:
            level = next((one for one in reversed(self.paths.levels) if one.is_text), self.paths.now)
            if level.lent or by != {-1}:
                self.refuse(level.function)
        if draft is None:
            return
        draft.stream, draft.acts, draft.bytes = stream, False, ANY_SIZE
        if waits:
            draft.note = "the host waits for its result"
        reads, writes = device_memory(entry, on_host)
        for indexes, mode in ((reads, AccessMode.READ), (writes, AccessMode.WRITE)):
            for index in indexes:
                self._touch(draft, values[index], mode, index)
        for indexes, mode in ((entry.reads_held, AccessMode.READ), (entry.writes_held, AccessMode.WRITE)):
            for index in indexes:
                self._touch(draft, held_by(state, values[index]), mode, index)
        for index in entry.results if waits else ():
            self._touch(draft, values[index], AccessMode.WRITE, index)
        own = self._handles(state).has_own(one) if self.paths.streams else draft.role is Role.MOVABLE
        asks = b"cudaMemGetInfo" in self.paths.texts.program.text  # and workspaces take memory
        may_share = own and not asks and shares(setter_of(entry.name))
        self._touch_own(draft, one, AccessMode.READ if may_share else AccessMode.WRITE)

    def _may_move(self, name: str) -> bool:
        """Whether the text can say the handle once more, to set its stream."""
        activation, at, through, own = self.paths.where()
        number = self.paths.operation(activation, at, through or name)
        return own and number >= 0 and self.paths.texts.program.operations[number].handle is not None

    def _touch(self, draft: Draft, value: Value, mode: AccessMode, index: int) -> None:
        for buffer in self.pointing.pointed(value):
            why = f"argument {index + 1}"
            draft.touch(buffer, f"{why} may point anywhere" if buffer is UNKNOWN else why, mode)

    def _touch_own(self, draft: Draft | None, one: Object, mode: AccessMode = AccessMode.WRITE) -> None:
        if draft is not None:
            draft.touch(self.paths.buffer(one), _OWN, mode)

    def _looks_at(self, value: Value, state: State) -> None:
        """The host reads a number, now."""
        found = objects(value)
        for one in sorted(found, key=lambda one: one.number):
            if one.visible and state.is_reached(one):
                self.paths.touches(state, one, writes=False)
        if not found:
            self.paths.touches(state, None, writes=False)

    # ---- a text that is read again

    def set_own(self, state: State, values: list[Value]) -> None:
        """A handle is given a stream, and a workspace for it."""
        one = handle_in(state, values[0])
        if one is None and not (self.paths.generic and handle_of(values[1]) == CURRENT):
            self.refuse("kesco_blas")
        elif one is not None:
            state.escape(values[1])
            self._handles(state).set_stream(one, scalar(values[1]), own=True, setter=self._setter())

    def _setter(self) -> int:
        """The number of the activation that control is in."""
        now = self.paths.now.activation
        return self._setters.setdefault(id(now), (len(self._setters), now))[0]

    def renew(self, state: State) -> None:
        """The streams of kesco's are fetched, and are others than before."""
        self._handles(state).renew()

    def reached(self, found: Iterable[Object], who: str, state: State) -> None:
        """Code that is not followed may use these handles."""
        for one in handles_in(found):
            self._must_be_default(handle_of(self._handles(state).stream(one)), who)

    def on_streams(self, state: State) -> bool:
        """Whether a handle has a stream of kesco's."""
        if not self.paths.streams:
            return False
        alive = handles_in(one for one in state.memory if not state.look(one).freed)
        return any(handle_of(self._handles(state).stream(one)) is not None for one in alive)

    def left(self, ways: Iterable[State | None], function: str, *, last: bool) -> None:
        """Control leaves the first function of a path: others may use the handles that are there.

        What runs behind the `last` one knows nothing of its own variables.
        """
        for state in filter(None, ways):
            alive = {one for one in state.memory if not state.look(one).freed}
            known = {one for one in alive if one.kind not in (HANDLE, "stack")} | state.escaped
            self.reached(state.reached(known) & alive if last else alive, function, state)

    def _must_be_default(self, stream: Handle | None, who: str) -> None:
        if stream is not None and self.paths.streams:
            self.refuse(who)

    def refuse(self, who: str) -> None:
        """Somebody who does not follow the stream of a handle may use it: nothing in the file is proven."""
        self.paths.file_wide = self.paths.file_wide or f"'{who}' may use a handle that has a stream of kesco's"


def settled(region: Region, *, streams: bool = False) -> Region:
    """The region in which a call moves only where it may in all ways in which it is made: it has one text.

    In one with `streams` where all of it is on the current one, and nobody sets that in those other ways.
    """
    if streams and any(s.stream is not None for s in region.sites):
        return region
    stay = {s.operation for s in region.sites if s.role is not Role.MOVABLE}
    sites = tuple(
        replace(s, role=Role.JOIN, note="its handle is not known whenever it is made")
        if s.kind is SiteKind.LIBRARY and s.role is Role.MOVABLE and s.operation in stay
        else s
        for s in region.sites
    )
    return region if sites == region.sites else replace(region, sites=sites)
