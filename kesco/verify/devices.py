"""Whether the streams that an output works on are those of the device that is current: ``device_problems(…)``.

In: a program that was read again, and its regions. Out: the places where a pointer to streams is used though the
device may be another one than where it was fetched. A stream belongs to the device that was current when it was made,
and a launch into it fails where another one is (CUDA guide, "Stream and Event Behavior").

1. ``kesco_streams`` gives the streams of the current device; so does ``kesco_stretch``, but without comparing pointers.
2. The device may change in a call of CUDA that sets or resets it, in functions of the file that come to one and go on,
and in what the region calls foreign. 3. Events are recorded and waited for in any stream. 4. A statement is followed
along all its branches, loops twice; a jump leads to every label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kesco.ir import program as ir
from kesco.ir.failures import leaves_if_it_went_well, never_comes_back
from kesco.ir.flow import Region, Role
from kesco.source import Span

_SETTERS = frozenset({"cudaSetDevice", "cudaInitDevice", "cudaSetValidDevices", "cudaDeviceReset", "cudaThreadExit"})
_ENDS = frozenset({"exit", "_exit", "_Exit", "quick_exit", "abort", "terminate", "__assert_fail"})
_FETCHES = frozenset({"kesco_streams", "kesco_streams_if_distinct", "kesco_paced"})
_CHECKS, _DISTINCT = "kesco_stretch", "kesco_streams_if_distinct"  # the one looks whether the device is another one
_NO_WORK = frozenset({"kesco_stretch", "kesco_pace", "cudaEventRecord", "cudaStreamWaitEvent", "cudaStreamSynchronize"})
_TYPE = "KescoStreams"
_State = frozenset[str] | None
_WHY = "is used, but the device may be another one than where it was fetched"


def device_problems(program: ir.Program, regions: Sequence[Region]) -> Iterator[tuple[Span, str]]:
    """The uses of streams that may be another device's, and what is wrong with them."""
    changing = _changing(program)
    foreign = {r.span: {s.operation for s in r.sites if s.foreign and s.role is Role.JOIN} for r in regions}
    for one in program.functions:
        declared = (n.variable for n in ir.walk(one.body) if isinstance(n, ir.Declare))
        names = frozenset(v.name for v in declared if _TYPE in v.type.spelling)
        if names:
            guarded = any(isinstance(n, ir.Call) and n.name.rpartition("::")[2] == _DISTINCT for n in ir.walk(one.body))
            walk = _Walk(names, changing, foreign.get(one.span, set()), guarded)
            for _ in range(2):  # a jump may lead back
                walk.run(one.body, frozenset())
            yield from ((span, f"'{name}' {_WHY}") for span, name in walk.found.items())


def _changing(program: ir.Program) -> frozenset[str]:
    """The functions of the file that may change the device, by key."""
    calls = {f.key: [n for n in _that_comes_back(f.body) if isinstance(n, ir.Call)] for f in program.functions}
    found = {key for key, inside in calls.items() if any(map(_sets_device, inside))}
    while more := {k for k, inside in calls.items() if k not in found and any(n.key in found for n in inside)}:
        found |= more
    return frozenset(found)


def _that_comes_back(one: ir.Stmt | ir.Expr) -> Iterator[ir.Stmt | ir.Expr]:
    """All of a function's body but branches that end the process, and what stands behind a check as such a branch."""
    yield one
    for behind, inner in enumerate(ir.children(one), start=1):
        if not (isinstance(one, ir.If) and isinstance(inner, ir.Stmt) and never_comes_back(inner)):
            yield from _that_comes_back(inner)
        if isinstance(one, ir.Block) and leaves_if_it_went_well(one.body[behind - 1]):
            rest = ir.Block(one.span, one.body[behind:])
            if never_comes_back(rest):
                return


def _sets_device(call: ir.Call) -> bool:
    return call.name in _SETTERS


@dataclass(slots=True)
class _Walk:
    """`found` are the uses; a state is which pointers are stale, or None where control does not come."""

    names: frozenset[str]
    changing: frozenset[str]
    foreign: set[int]
    guarded: bool
    found: dict[Span, str] = field(default_factory=dict)
    _left: list[_State] = field(default_factory=list)  # where the loop or switch around is left or gone on with
    _jumped: _State = None  # what control may jump with, or to
    _entered: _State = None  # what the cases of the switch around begin with

    def run(self, one: ir.Stmt, state: _State) -> _State:
        """The state behind a statement."""
        match one:
            case ir.Block():
                return self._all(one.body, state)
            case ir.If():
                state = self._expression(one.condition, self._all(one.before, state))
                other = state if one.other is None else self.run(one.other, state)
                return _either(self.run(one.then, state), other)
            case ir.Loop():
                return self._loop(one, self._all(one.before, state))
            case ir.Switch():
                state = self._expression(one.condition, self._all(one.before, state))
                around, self._entered = self._entered, state
                behind = self._inside(one.body, None)
                self._entered = around
                return _either(state, behind)
            case ir.Case():
                return self.run(one.body, _either(state, self._entered))
            case ir.Obstacle(reason="goto" | "a computed goto" | "a label"):
                self._jumped = _either(self._jumped, state)
                return self._jumped if one.reason == "a label" else None
            case ir.Leave():
                state = self._expression(one.value, state)
                if one.how in ("break", "continue"):
                    self._left.append(state)
                return None
        return self._expression(one, state)

    def _all(self, every: Sequence[ir.Stmt], state: _State) -> _State:
        for one in every:
            state = self.run(one, state)
        return state

    def _loop(self, loop: ir.Loop, state: _State) -> _State:
        behind: _State = None
        for _ in range(2):
            state = state if loop.tested_after else self._expression(loop.condition, state)
            behind = _either(behind, None if loop.tested_after or loop.condition is None else state)
            state = _either(state, self._expression(loop.step, self._inside(loop.body, state)))
            state = self._expression(loop.condition, state) if loop.tested_after else state
        return _either(behind, state)

    def _inside(self, body: ir.Stmt, state: _State) -> _State:
        """The state behind a body, also where it is left before its end."""
        around, self._left = self._left, []
        state = self.run(body, state)
        for one in self._left:
            state = _either(state, one)
        self._left = around
        return state

    def _expression(self, one: ir.Expr | ir.Stmt | None, state: _State) -> _State:
        """The state behind what is evaluated at once: what it uses, then what changes, then what is fetched."""
        if one is None or state is None:
            return state
        nodes = list(ir.walk(one))
        made = {n.variable.name for n in nodes if isinstance(n, ir.Declare) and _TYPE in n.variable.type.spelling}
        calls = [n for n in nodes if isinstance(n, ir.Call)]
        called = {n.name.rpartition("::")[2] for n in calls}
        if called & _FETCHES or (_CHECKS in called and not self.guarded):
            set_ = {n.target.variable.name for n in nodes if isinstance(n, ir.Assign) and isinstance(n.target, ir.Name)}
            return state - made - set_
        if called and called <= _NO_WORK and not any(isinstance(n, ir.Launch) for n in nodes):
            return state
        for node in nodes:
            if isinstance(node, ir.Name) and node.variable.name in state:
                self.found.setdefault(node.span, node.variable.name)
                state -= {node.variable.name}  # said once
        if any(n.key in self.changing or _sets_device(n) or n.operation in self.foreign for n in calls):
            state |= self.names
        return None if any(_ends(n) for n in calls) else state


def _ends(call: ir.Call) -> bool:
    return call.standard and call.name.rpartition("::")[2] in _ENDS


def _either(one: _State, other: _State) -> _State:
    if one is None or other is None:
        return other if one is None else one
    return one | other
