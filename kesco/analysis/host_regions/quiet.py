"""Functions of the text whose IR changes nothing: ``Quiet(texts, models)`` is asked with one.

In: the file and its module. Out: whether a function stores to nothing but variables of its own, and calls nothing but
such functions, in each of its instances. Apart from the walk as it is asked before that, of a few functions.

What it refuses: calls through pointers, functions without a body that do more than tell a number, and recursion.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kesco.analysis.host.engine import REPLACED, STUB
from kesco.analysis.host.models import Model, Models
from kesco.analysis.host_regions.texts import Texts
from kesco.frontend.standard import is_standard_path
from kesco.ir import program as ir
from kesco.llvm.values import Function, Instruction, Local, Symbol

_DOES = frozenset(("atomicrmw", "cmpxchg", "fence", "callbr", "va_arg"))
_LAMBDA = re.compile(r"U[lL]\w*E\d*_cl")  # what one is called, in a function's symbol
_LIBRARY = ("llvm.", "_ZSt", "_ZNSt", "_ZNKSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx", "_Zn", "_Zd", "__",
            "_ZN6thrust", "_ZNK6thrust", "_ZN3cub", "_ZNK3cub", "_ZN4cuda", "_ZNK4cuda")  # fmt: skip
_PARTS = ("getelementptr", "bitcast", "addrspacecast")


@dataclass(slots=True)
class Quiet:
    """Answers for one file; what was found is kept."""

    texts: Texts
    models: Models
    _known: dict[str, bool] = field(default_factory=dict)

    def __call__(self, function: ir.Function) -> bool:
        """Whether all that this function of the text is in the IR changes nothing."""
        module, part = self.texts.module, f"{len(function.name.encode())}{function.name}"
        named = [one for one in map(module.function, (n for n in module.defined() if part in n)) if one is not None]
        instances = [one.name for one in named if self.texts.function(one) is function]
        return bool(instances) and all(map(self._is_quiet, instances))

    def lambdas(self) -> bool:
        """Whether this is so of all lambdas of the file."""
        found = [name for name in self.texts.module.defined() if _LAMBDA.search(name)]
        return bool(found) and all(map(self._is_quiet, found))

    def hides(self, one: Instruction) -> bool:
        """Whether an instruction runs code of the program's that the text need not show, and that changes something.

        Constructors and destructors are so, and what a variable of a thread begins with. What is called through a
        pointer, or by the library, the text shows.
        """
        if one.opcode not in ("call", "invoke"):
            return one.opcode in _DOES
        called = one.operands[-1]
        name = called.name if isinstance(called, Symbol) else ""
        if not name or STUB in name or name.startswith(_LIBRARY) or self.models.knows(name):
            return False
        return not self._is_quiet(name) and not self._is_standard(name)

    def _is_standard(self, name: str) -> bool:
        """Whether a function is of a header of the library or of CUDA."""
        head = self.texts.module.head(name)
        number = -1 if head is None else next((n for what, n in head.metadata if what == "dbg"), -1)
        place = self.texts.module.place(number) if number >= 0 else None
        return place is not None and is_standard_path(place.file)

    def _is_quiet(self, name: str) -> bool:
        if name not in self._known:
            self._known[name] = False  # it may call itself
            body, model = self.texts.module.function(name), self.models.of(name)
            seen = body is not None and name not in self.texts.program.weak and not REPLACED & {*body.head.words}
            self._known[name] = self._stays(body) if body is not None and seen else body is None and _only_tells(model)
        return self._known[name]

    def _stays(self, function: Function) -> bool:
        every = [one for block in function.blocks for one in block.instructions]
        made = {one.result.name: one for one in every if one.result is not None}
        return all(self._keeps(one, made) for one in every)

    def _keeps(self, one: Instruction, made: dict[str, Instruction]) -> bool:
        if one.opcode in ("call", "invoke"):
            called = one.operands[-1]
            return isinstance(called, Symbol) and self._is_quiet(called.name)
        if one.opcode == "store" and not _is_own(one.operands[-1], made):
            return False
        return one.opcode not in _DOES and "volatile" not in one.words


def _is_own(pointer: object, made: dict[str, Instruction]) -> bool:
    """Whether it points into a variable of the function itself."""
    while isinstance(pointer, Local) and pointer.name in made:
        one = made[pointer.name]
        if one.opcode not in _PARTS:
            return one.opcode == "alloca"
        pointer = one.operands[0]
    return False


def _only_tells(model: Model | None) -> bool:
    """Whether a function without a body gives a number, or passes on what it was given, and does nothing else."""
    return model is not None and model == Model(model.name, returns=model.returns, begins=model.begins)
