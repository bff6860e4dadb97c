"""How control leaves a function, of which the IR keeps no more than jumps to where destructors run.

In: the activation that is walked, and where control is in it. Out: whether it leaves by a ``return`` of the text, and
whether kesco's own object waits for the device then.

1. All that a macro does stands where its ``return`` does. So a jump is that only if it leads out of the function
whatever else is so, past no other ``return``. 2. In a text that is read again, the end of a `KescoLeave` that is still
early waits for the device.
"""

from __future__ import annotations

import re

from kesco.analysis.host.frames import Frame
from kesco.analysis.host.memory import State
from kesco.analysis.host.steps import evaluated, load
from kesco.analysis.host.values import number
from kesco.analysis.host_regions.texts import Texts
from kesco.ir import program as ir
from kesco.llvm.types import BYTE
from kesco.llvm.values import Instruction

_ENDS = re.compile(r"\d+KescoLeaveD[12]E")


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
    way = frame.graph.on_the_way_out(frame.block, frame.at.targets[-1])
    ends = (one for one in way if one.opcode in ("call", "invoke") and _ENDS.search(str(one.operands[-1])))
    last = next(ends, None)
    return last is not None and number(load(frame, state, evaluated(frame, last.operands[0], state), BYTE)) == 1


def is_end(name: str) -> bool:
    """Whether this is the destructor of that object."""
    return _ENDS.search(name) is not None
