"""Whether memory that is handed on could make the peak higher: what stands around the statements that free it.

In: the program and statements of a block. Out: yes or no. Apart from the rest because this is about the device's memory
as a whole, with that which does not move.

Up to where the serial program frees the first of the memory that moves, the output has no more at any time: each
allocation it makes is of the size of one that the serial program has made by then. From there on an allocation may
still be there since a smaller one is in it, while the serial program has freed it. That does no harm as long as nobody
allocates anything before all of it is free:

1. No statement up to the last of those that free allocates memory of the device, or might. 2. While the memory may be
there, the function does not return, but where a call of CUDA has failed: then the memory would never be freed, and
could be a caller's. In ``main`` that ends the process. 3. Nor is the block left by ``break`` or ``continue``, so that
the same statements would allocate once more before anything is freed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kesco.ir import program as ir
from kesco.ir.failures import leaves_where_it_failed

_TAKES_NONE = re.compile(
    r"cuda(?:Free(?:Host)?|Mem(?:cpy|set)\w*|Get(?:LastError|ErrorString|ErrorName)|PeekAtLastError|"
    r"Event(?:Record|Synchronize|Query|ElapsedTime|Destroy)|(?:Device|Stream)Synchronize|StreamQuery)"
)
_OF_CUDA = re.compile(r"cu[A-Z]|cu(?:da|blas|fft|rand|sparse|solver|dnn|tensor)|nv|nccl")


def may_allocate(program: ir.Program, statements: Iterable[ir.Stmt]) -> bool:
    """Whether one of these statements may allocate memory of the device."""
    functions = {f.key: f for f in program.functions}
    known: dict[str, bool] = {}

    def makes(node: ir.Stmt) -> bool:
        return any(isinstance(one, ir.Obstacle) or of_call(one) for one in ir.walk(node))

    def of_call(one: ir.Expr | ir.Stmt) -> bool:
        if not isinstance(one, ir.Call):
            return False
        name = one.name.rpartition("::")[2]
        if one.key in functions:
            if one.key not in known:
                known[one.key] = True  # one that calls itself
                known[one.key] = makes(functions[one.key].body)
            return known[one.key]
        if _TAKES_NONE.fullmatch(name):
            return False
        return not one.standard or one.runs or one.destroys or _OF_CUDA.match(name) is not None

    return any(map(makes, statements))


def may_keep(function: ir.Function, statements: Iterable[ir.Stmt]) -> bool:
    """Whether one of these statements may leave their block with nothing failed, and the process goes on."""
    return any((function.name != "main" and _returns(one)) or _jumps(one) for one in statements)


def _returns(statement: ir.Stmt) -> bool:
    """Whether a statement may leave its function where no call of CUDA has failed."""
    ways = any(isinstance(one, ir.Leave) and one.how in ("return", "throw") for one in ir.walk(statement))
    return ways and not leaves_where_it_failed(statement)


def _jumps(statement: ir.Stmt, ways: frozenset[str] = frozenset({"break", "continue"})) -> bool:
    """Whether a statement may jump to the end or the next trip of a loop or ``switch`` around it."""
    if isinstance(statement, ir.Leave):
        return statement.how in ways
    inner = ways - {"break", "continue"} if isinstance(statement, ir.Loop) else ways
    inner = inner - {"break"} if isinstance(statement, ir.Switch) else inner
    return any(_jumps(one, inner) for one in ir.children(statement) if isinstance(one, ir.Stmt))
