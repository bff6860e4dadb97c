"""Device symbols that the host names and the device's compilation does not show it to use.

In: the program, the effects of kernels, the device IR. Out: the effects, with what may be missing. A file may keep
host code from the device's compilation (``#ifndef __CUDA_ARCH__``). Then clang sees that only kernels use a symbol of
internal linkage, and leaves out stores that no kernel reads and loads of what no kernel stores. nvcc does not. Where
clang knows that the host uses such a symbol, it makes it visible from outside.

What such a store was of, or what the load led to, is left out with it. So where the host names a symbol of internal
linkage that some text of the device IR does not have as one that is visible, no kernel's body is taken for what runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kesco.ir import program as ir
from kesco.ir.effects import KernelEffects
from kesco.llvm.module import Module

_INTERNAL = re.compile(r"^_ZL\d|^_ZN\w*?L\d|_GLOBAL__N_|^_ZZ")
_WHY = "the host names a device symbol that clang does not know it to use"


def with_hidden_symbols(
    effects: Mapping[str, KernelEffects], program: ir.Program, texts: Sequence[str]
) -> dict[str, KernelEffects]:
    """The effects, with no kernel that is followed where symbols may be used unseen."""
    every = (n for f in program.functions for n in ir.walk(f.body) if isinstance(n, ir.Name))
    named = {n.variable.mangled for n in every if n.variable.scope is ir.Scope.SYMBOL}
    named = {one for one in named if _INTERNAL.search(one)}
    shown = [_visible(Module(text)) for text in texts] if named else []
    if all(one in visible for one in named for visible in shown):
        return dict(effects)
    return {name: replace(one, opaque=one.opaque or _WHY) for name, one in effects.items()}


def _visible(module: Module) -> set[str]:
    """The variables that other modules may name."""
    found = (module.variable(name) for name in module.variables())
    return {one.name for one in found if one is not None and not {"internal", "private"}.intersection(one.words)}
