"""How control leaves a function, of which the IR keeps no more than jumps to where destructors run.

In: the activation that is walked, and where control is in it. Out: whether it leaves by a ``return`` of the text, and
whether kesco's own object waits for the device then.

1. All that a macro does stands where its ``return`` does. So a jump is that only if it leads out of the function
whatever else is so, past no other ``return``. 2. In a text that is read again, the end of a `KescoLeave` that is still
early waits for the device, and on the way of an exception just there. 3. Where an exception is caught in the function
itself, and what is destroyed before that has to do with the device, the serial text gets a site for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kesco.analysis.host.frames import Frame, ends_the_process
from kesco.analysis.host.memory import State
from kesco.analysis.host.steps import evaluated, load
from kesco.analysis.host.values import Value, number
from kesco.analysis.host_regions.texts import Texts
from kesco.ir import program as ir
from kesco.ir.flow import CAUGHT, Role, SiteKind
from kesco.llvm.types import BYTE
from kesco.llvm.values import Instruction

if TYPE_CHECKING:
    from kesco.analysis.host_regions.watching import Watching

_BEGIN_CATCH, _END_CATCH = "__cxa_begin_catch", "__cxa_end_catch"
_CALLS = ("call", "invoke")
_ENDS = re.compile(r"\d+KescoLeaveD[12]E")


def returns_at(texts: Texts, function: ir.Function, frame: Frame | None, instruction: Instruction) -> int:
    """The ``return`` of the text that an instruction may be of, or -1.

    One in a ``catch`` has no place of its own: what stands in front of it, at the closing brace, lets the exception go.
    """
    operation, how = texts.leave(function, instruction.place)
    if how == "return" or frame is None or instruction.opcode != "br" or instruction.place >= 0:
        return operation if how == "return" else -1
    ends = [one for one in frame.graph.blocks[frame.block].instructions if _END_CATCH in str(one.operands[-1:])]
    return texts.returned_at_end(function, ends[-1].place) if ends else -1


def throws(paths: Watching, state: State) -> None:
    """An exception is thrown: here by the text; by other code it leaves that, and is one that may have come in."""
    text = next((one for one in reversed(paths.levels) if one.is_text), None)
    if paths.now.call is not None or (text is not None and _stays(paths.engine.frame, text.function)):
        return
    activation, at, _, _ = paths.where()
    operation, _ = paths.texts.leave(activation.function, at.place if at is not None else -1)
    if operation < 0:
        activation.stay_serial("an exception has no place of its own in the text", paths.span(activation, at))
    paths.exit(activation, state, operation, "throw", paths.span(activation, at))


def _stays(frame: Frame | None, function: str) -> bool:
    """Whether what is thrown where control is may be caught up to this function, or by nobody: it does not leave it."""
    if frame is not None and ends_the_process(frame):
        return True
    while frame is not None and not frame.catches:
        frame = frame.caller if frame.function.name != function else None
    return frame is not None


def leaves_by(
    texts: Texts, function: ir.Function, operation: int, frame: Frame | None, instruction: Instruction
) -> bool:
    """Whether control leaves a function by this ``return`` with this instruction."""
    if frame is None or instruction.opcode == "unreachable":
        return operation >= 0
    if operation < 0 or len(instruction.targets) != 1:
        return False
    way = frame.graph.on_the_way_out(frame.block, instruction.targets[0])
    places = dict.fromkeys(one.place for one in way)
    return bool(way) and all(texts.leave(function, at)[0] in (-1, operation) for at in places)


def waits(frame: Frame, state: State) -> bool:
    """Whether kesco's own object waits for the device on the way out that begins here."""
    if frame.at is None or not frame.at.targets:
        return False
    if frame.at.opcode == "invoke":
        return _end_on_all_ways(frame, frame.at.targets[-1], state)
    way = frame.graph.on_the_way_out(frame.block, frame.at.targets[-1])
    ends = (one for one in way if one.opcode in ("call", "invoke") and _ENDS.search(str(one.operands[-1])))
    last = next(ends, None)
    return last is not None and _is_early(frame, last, state)


def _until(frame: Frame, pad: str, ends: Callable[[list[Instruction]], bool]) -> Iterator[list[Instruction]]:
    """Blocks from a landing pad on, each as its calls and its last instruction; none behind one that `ends`."""
    seen, work = set[str](), [pad]
    while work:
        name = work.pop()
        if name in seen:
            continue
        seen.add(name)
        *every, last = frame.graph.blocks[name].instructions
        found = [*(one for one in every if one.opcode in _CALLS), last]
        yield found
        work += () if ends(found) else last.targets


def _names(one: Instruction, called: str) -> bool:
    return one.opcode in _CALLS and called in str(one.operands[-1])


def _end_on_all_ways(frame: Frame, pad: str, state: State) -> bool:
    """Whether the object ends, early, on each way that an exception may take out of the function."""

    def end(calls: list[Instruction]) -> Instruction | None:
        return next((one for one in calls if one.opcode in _CALLS and _ENDS.search(str(one.operands[-1]))), None)

    found = False
    for calls in _until(frame, pad, lambda calls: end(calls) is not None):
        object_ends = end(calls)
        if object_ends is not None and not _is_early(frame, object_ends, state):
            return False
        leaves = calls[-1].opcode in ("ret", "resume") or any(_names(one, _BEGIN_CATCH) for one in calls)
        if object_ends is None and leaves:
            return False
        found = found or object_ends is not None
    return found


def _is_early(frame: Frame, end: Instruction, state: State) -> bool:
    return number(load(frame, state, evaluated(frame, end.operands[0], state), BYTE)) == 1


def unwinds(paths: Watching, frame: Frame, instruction: Instruction, state: State) -> None:
    """An exception is caught in a function of the text: on its way destructors may run that are no code of its text."""
    level, pad = paths.now, instruction.targets[1]
    if not level.is_text or level.call is not None or paths.streams:
        return
    if not any(map(paths.engine.leads_to_cuda, _before_caught(frame, pad))):
        return
    activation, at, _, _ = paths.where()
    key = (
        -3 - len(paths.texts.program.text) - frame.graph.order[_first_acting(frame, pad)],
        CAUGHT,
        paths.iterations(),
    )
    builder, span = activation.builder, paths.span(activation, at)
    _, state.frontier = builder.add(key, CAUGHT, SiteKind.HOST_USE, Role.HOST, span, state.frontier)


def _first_acting(frame: Frame, pad: str) -> str:
    """Where paths on which the same is destroyed have met, from a landing pad on."""
    for _ in frame.graph.blocks:
        *every, last = frame.graph.blocks[pad].instructions
        if len(last.targets) != 1 or last.opcode != "br" or any(one.opcode in _CALLS for one in every):
            break
        pad = last.targets[0]
    return pad


def _before_caught(frame: Frame, pad: str) -> set[str]:
    """What may be called from a landing pad on, until the exception is caught or leaves the function."""

    def caught(calls: list[Instruction]) -> bool:
        return any(_names(one, _BEGIN_CATCH) for one in calls)

    ways = [calls for calls in _until(frame, pad, caught) if not caught(calls)]
    every = (one for calls in ways for one in calls if one.opcode in _CALLS)
    return {str(getattr(one.operands[-1], "name", "")) for one in every}


def ended(paths: Watching, values: list[Value], state: State) -> None:
    """Kesco's own object ends in a text that is read again: on the way of an exception it waits for the device."""
    frame = paths.engine.frame
    if frame is None or not state.unwinds or number(load(frame, state, values[0], BYTE)) != 1:
        return
    activation, at, _, _ = paths.where()
    builder, span = activation.builder, paths.span(activation, at)
    if all(builder.drafts[n].role is Role.EXIT for n in state.frontier):
        return  # it was looked ahead for
    key = (-2 - len(paths.texts.program.text), "waits", paths.iterations())
    _, state.frontier = builder.add(key, "cudaDeviceSynchronize", SiteKind.SYNC, Role.DEVICE_SYNC, span, state.frontier)


def is_end(name: str) -> bool:
    """Whether this is the destructor of that object."""
    return _ENDS.search(name) is not None
