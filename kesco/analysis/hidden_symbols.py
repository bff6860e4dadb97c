"""Device symbols that the host names and the device's compilation does not show it to use.

In: the program, the effects of kernels, the device IR. Out: the effects, with what may be missing. A file may keep
host code from the device's compilation (``#ifndef __CUDA_ARCH__``). Then clang sees that only kernels use a symbol of
internal linkage, and leaves out stores that no kernel reads and loads of what no kernel stores. nvcc does not. Where
clang knows that the host uses such a symbol, it makes it visible from outside.

So each kernel counts as reading and writing a symbol of internal linkage that the host names, and that some text of the
device IR does not have as one that is visible.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kesco.analysis.device_names import NAME, bare
from kesco.ir import program as ir
from kesco.ir.access import AccessMode
from kesco.ir.effects import KernelEffects, RootEffect

_INTERNAL = re.compile(r"^_ZL\d|^_ZN\w*?L\d|_GLOBAL__N_|^_ZZ")
_VISIBLE = re.compile(rf"^{NAME} = (?!internal |private )", re.MULTILINE)
_MAY = RootEffect(AccessMode.READ_WRITE)


def with_hidden_symbols(
    effects: Mapping[str, KernelEffects], program: ir.Program, texts: Sequence[str]
) -> dict[str, KernelEffects]:
    """The effects, each with the symbols that it may use unseen."""
    every = (n for f in program.functions for n in ir.walk(f.body) if isinstance(n, ir.Name))
    named = {n.variable.mangled for n in every if n.variable.scope is ir.Scope.SYMBOL}
    named = {one for one in named if _INTERNAL.search(one)}
    shown = [{bare(name) for name in _VISIBLE.findall(text)} for text in texts] if named else []
    hidden = {one: _MAY for one in named if not all(one in visible for visible in shown)}
    if not hidden:
        return dict(effects)
    return {
        name: replace(one, symbols=tuple(sorted((dict(one.symbols) | hidden).items()))) for name, one in effects.items()
    }
