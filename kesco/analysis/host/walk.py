"""A function, walked on all paths that it may take: arguments and memory before → result and memory after.

1. Control goes on with the block that comes first in the graph's order; where paths meet before that, they are joined,
but for those on which a call of CUDA has failed.
2. A loop whose conditions are known, and that does more than count, is walked trip by trip. Where it is not known
   whether there is another trip, or after too many, it is walked to a fixed point: until one more trip adds nothing.
   One inside it that is walked so, too, is gone on with from what it was found to begin with on the trip before.
   Loops that are nested deeply are walked so from their first trip on.
3. An exception leaves by the unwind edge of the ``invoke`` around it, or leaves the function. One that nobody between
   it and ``main`` catches ends the process where it is thrown: no destructor runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kesco.analysis.host.engine import Engine
from kesco.analysis.host.frames import Caller, Frame, ends_the_process
from kesco.analysis.host.frames import Outcome as Outcome
from kesco.analysis.host.joining import join_states
from kesco.analysis.host.memory import State
from kesco.analysis.host.record import OutOfBudget, Refused
from kesco.analysis.host.steps import evaluated, perform
from kesco.analysis.host.values import NOTHING, STATUS, ZERO, Atom, Value, joined, nameless, number, numbers, scalar
from kesco.llvm.values import Function, Instruction

_ROUNDS = 2  # trips to a fixed point before values grow faster
_ACCESS = {"load": 0, "store": 1}  # which operand is the address
_NESTED = 3  # loops of unknown trips around one whose first trip is not walked by itself: each takes five times as long
_PEELED = 6  # loops in each other of which each trip's first is walked by itself, as `Engine.peels` asks


def run(
    engine: Engine, function: Function, arguments: Sequence[Value], state: State, context: int, call: Caller
) -> Outcome:
    """Walk a function; the state is used up. Those that come back have no values of the function's any more."""
    parameters = function.parameters
    state.values = {p.value.name: v for p, v in zip(parameters, arguments, strict=False)}
    extra: set[Atom] = set()
    for value in arguments[len(parameters) :]:
        extra |= scalar(value)
    frame = Frame(engine, function, engine.graph(function), context, frozenset(extra))
    around, engine.frame = engine.frame, frame
    frame.caller = around
    engine.record.reached.setdefault(engine.record.root, set()).add(function.name)
    frame.pending[frame.graph.entry, ()] = state
    order = frame.graph.order
    while frame.pending:
        at = min(frame.pending, key=lambda one: order[one[0]])
        frame.block = name = at[0]
        fixed = sum(head in frame.fixed for head in frame.around)
        engine.fixed += fixed
        try:
            _block(frame, name, frame.pending.pop(at), call)
        except OutOfBudget:
            engine.frame = around
            raise
        finally:
            engine.fixed -= fixed
    engine.frame = around
    return frame.outcome


def _block(frame: Frame, name: str, state: State, call: Caller) -> None:
    engine = frame.engine
    for instruction in frame.graph.blocks[name].instructions:
        engine.step()
        frame.at = instruction
        opcode = instruction.opcode
        if opcode == "phi":
            continue
        if opcode in ("call", "invoke"):
            frame.values = state.values
            outcome = call(frame, instruction, state)
            if outcome.thrown is not None:
                _thrown(frame, instruction, outcome.thrown)
            if outcome.state is None:
                return
            state = outcome.state
            if instruction.result is not None:
                value = outcome.value if engine.words is None else nameless(outcome.value)
                state.values[instruction.result.name] = value
            if opcode == "invoke":
                _go(frame, instruction.targets[0], state)
        elif opcode in _LAST:
            frame.values = state.values
            if engine.watcher is not None:
                engine.watcher.turns(frame, instruction, state)
            _LAST[opcode](frame, instruction, state)
        elif opcode in _ACCESS and evaluated(frame, instruction.operands[_ACCESS[opcode]], state) == ZERO:
            return  # nothing is at a null pointer: control does not come here
        else:
            value = perform(frame, instruction, state)
            if instruction.result is not None:
                state.values[instruction.result.name] = value


# ---- where control goes


def _branch(frame: Frame, instruction: Instruction, state: State) -> None:
    targets = instruction.targets
    failed = ""
    frame.told.discard(frame.block)
    if instruction.operands:
        known = numbers(evaluated(frame, instruction.operands[0], state))
        if known is not None:
            targets = tuple(dict.fromkeys(targets[0] if one else targets[1] for one in known))
        ends = (one for one in instruction.targets if frame.block in frame.graph.leaves(frame.block, one))
        if len(targets) == 1 and any(ends):
            frame.told.add(frame.block)
        if len(targets) > 1 and not state.failing:
            failed = where_it_failed(frame, instruction, state)
    _choose(frame, targets, state, failed)


def where_it_failed(frame: Frame, instruction: Instruction, state: State) -> str:
    """Where control goes on only because a call of CUDA has failed: its status is compared with 0."""
    condition = instruction.operands[0]
    for one in frame.graph.blocks[frame.block].instructions:
        if one.result is not None and one.opcode == "icmp" and one.result == condition:
            sides = [evaluated(frame, operand, state) for operand in one.operands]
            if STATUS in sides and ZERO in sides and one.words[-1] in ("ne", "eq"):
                return instruction.targets[0 if one.words[-1] == "ne" else 1]
    return ""


def _switch(frame: Frame, instruction: Instruction, state: State) -> None:
    known = numbers(evaluated(frame, instruction.operands[0], state))
    targets = instruction.targets
    if known is not None:
        cases = dict(zip(instruction.indices, instruction.targets[1:], strict=True))
        targets = tuple(dict.fromkeys(cases.get(one, instruction.targets[0]) for one in known))
    _choose(frame, tuple(dict.fromkeys(targets)), state)


def _jump(frame: Frame, instruction: Instruction, state: State) -> None:
    _choose(frame, tuple(dict.fromkeys(instruction.targets)), state)


def _return(frame: Frame, instruction: Instruction, state: State) -> None:
    value = evaluated(frame, instruction.operands[0], state) if instruction.operands else NOTHING
    frame.forget(state)
    outcome = frame.outcome
    if outcome.state is None:
        outcome.value, outcome.state = value, state
    else:
        outcome.value = joined(outcome.value, value)
        outcome.state, _ = join_states(outcome.state, state)


def _resume(frame: Frame, instruction: Instruction, state: State) -> None:
    _leave(frame, state)


def _end(frame: Frame, instruction: Instruction, state: State) -> None:
    pass


_LAST: dict[str, Callable[[Frame, Instruction, State], None]] = {
    "br": _branch, "switch": _switch, "indirectbr": _jump, "ret": _return, "resume": _resume, "unreachable": _end,
}  # fmt: skip


def _thrown(frame: Frame, instruction: Instruction, state: State) -> None:
    if ends_the_process(frame):
        return
    if instruction.opcode == "invoke":
        state.unwinds = True
        way = frame.graph.on_the_way_out(frame.block, instruction.targets[1])
        if frame.engine.watcher is not None and way and way[-1].opcode == "resume":
            frame.engine.watcher.thrown_out(state)
        elif frame.engine.watcher is not None and frame.catches:
            frame.engine.watcher.unwinds(frame, instruction, state)
        _go(frame, instruction.targets[1], state)
    else:
        _leave(frame, state)


def _leave(frame: Frame, state: State) -> None:
    """An exception leaves the function."""
    if frame.engine.watcher is not None:
        frame.engine.watcher.thrown_out(state)
    frame.forget(state)
    outcome = frame.outcome
    outcome.thrown = state if outcome.thrown is None else join_states(outcome.thrown, state)[0]


def _choose(frame: Frame, targets: tuple[str, ...], state: State, failed: str = "") -> None:
    if len(targets) > 1:
        for target in targets:
            if target != failed or not frame.engine.peels:
                _is_unsure(frame, [h for h in frame.graph.leaves(frame.block, target) if h not in frame.told])
    for target in targets[1:]:
        other = state.copy()
        other.failing = state.failing or target == failed
        if frame.engine.watcher is not None:
            frame.engine.watcher.takes(frame, target, other)
        _go(frame, target, other)
    state.failing = state.failing or targets[0] == failed
    if frame.engine.watcher is not None and len(targets) > 1:
        frame.engine.watcher.takes(frame, targets[0], state)
    _go(frame, targets[0], state)


def _is_unsure(frame: Frame, heads: Sequence[str]) -> None:
    """It is not known whether there is another trip of these loops."""
    frame.unsure.update(heads)
    for head in heads:
        if head in frame.deep and head not in frame.fixed:
            frame.fixed[head] = (frame.deep[head], 0)


def _go(frame: Frame, target: str, state: State) -> None:
    """Let control arrive at a block, with a state of its own."""
    frame.engine.step(1 + len(state.memory) // 32)  # states are copied and joined object by object
    _choose_phis(frame, target, state)
    frame.keep(state, target)
    around = frame.graph.inside[target]
    if target in around:
        again = target in frame.graph.inside[frame.block]
        goes_on = all(head in frame.fixed for head in around[frame.first_deep(around) :])
        if frame.engine.peels and frame.engine.leads_to_cuda(frame.function.name):
            goes_on = False
        if not again and not goes_on:
            _enter(frame, target, state)
        elif not _goes_on(frame, target, state):
            return
    if frame.engine.watcher is not None and target in around:
        frame.engine.watcher.begins(frame, target, state)
        frame.counters[target] = {
            one.result.name: known
            for one in frame.graph.blocks[target].instructions
            if one.opcode == "phi" and one.result is not None
            and (known := number(state.values.get(one.result.name, NOTHING))) is not None
        }  # fmt: skip
    at = (target, frame.way(state, target))
    waiting = frame.pending.get(at)
    frame.pending[at] = state if waiting is None else join_states(waiting, state)[0]


def _enter(frame: Frame, head: str, state: State) -> None:
    """Begin a loop anew."""
    _forget_fixed(frame, head)
    frame.trips[head] = 0
    frame.begun[head] = frame.engine.steps
    frame.unsure.discard(head)
    frame.deep.pop(head, None)
    outside = sum(one in frame.unsure or one in frame.fixed for one in frame.graph.inside[head][:-1])
    if frame.engine.peels and frame.engine.leads_to_cuda(frame.function.name):
        if outside >= _PEELED:
            raise Refused(f"more than {_PEELED} loops are in each other in {frame.function.name}")
    elif outside >= _NESTED:
        frame.deep[head] = state.copy()


def _goes_on(frame: Frame, head: str, state: State) -> bool:
    """Whether there is something to be found on another trip of a loop; `state` becomes what it begins with."""
    frame.trips[head] = frame.trips.get(head, 0) + 1
    if head not in frame.fixed:
        step_by_step = head in frame.graph.paying and head not in frame.unsure
        if step_by_step and frame.trips[head] < frame.engine.trips_since(frame.begun[head]):
            return True
        _forget_fixed(frame, head)
        frame.fixed[head] = (state.copy(), 0)
        return True
    known, rounds = frame.fixed[head]
    widen = rounds >= _ROUNDS or head not in frame.graph.paying
    known, changed = join_states(known, state, widen=widen)
    frame.fixed[head] = (known, rounds + 1)
    if changed:
        begin = known.copy()
        state.take(begin)
    return changed


def _forget_fixed(frame: Frame, head: str) -> None:
    """Forget what a loop, and those inside it, were found to begin with."""
    for one in [one for one in frame.fixed if head in frame.graph.inside[one]]:
        del frame.fixed[one]


def _choose_phis(frame: Frame, target: str, state: State) -> None:
    found: list[tuple[str, Value]] = []
    for one in frame.graph.blocks[target].instructions:
        if one.opcode != "phi":
            break
        if one.result is not None:
            for value, source in zip(one.operands, one.targets, strict=True):
                if source == frame.block:
                    found.append((one.result.name, evaluated(frame, value, state)))
                    break
    state.values.update(found)
