"""Device LLVM IR → `KernelEffects`: what each kernel does to the memory its caller can name.

In: the IR of one translation unit, as clang prints it. Out: one `KernelEffects` a kernel, sorted by mangled name.

A stage of its own because it is the only one that looks at device code, and because everything later trusts it blindly:
an access missed here is a race there.

1. `device_reader` reads the module through llvmlite into plain values (`device_ir`); `device_calls` knows what calls
   without a body do.
2. `effects_solver` follows every pointer of a kernel to the parameter, field or symbol it came from;
   `effects_machine` knows what an access through it means.
3. Here the findings become the nouns of `ir.effects`.

What cannot be followed makes the kernel opaque, with the reason; it is never guessed. Integers that are derived from
pointers are followed like pointers. Not followed are pointers rebuilt by comparing and branching, or carried through
floating-point arithmetic: what such a value reaches counts as unknown where nothing else feeds it.

`RootEffect.deep` says that memory is reached through pointers stored in a root's memory, not which: whoever resolves it
must treat those pointers as unknown once any kernel may have written that memory.
"""

from __future__ import annotations

from dataclasses import replace

from kesco.analysis.device_reader import DeviceModule
from kesco.analysis.effects_solver import Solver
from kesco.ir.effects import KernelEffects, ParamEffect, RootEffect
from kesco.llvm.names import display_name


def kernel_effects(ir_text: str) -> tuple[KernelEffects, ...]:
    """The effects of all kernels in the module; `InputError` (K110) if LLVM cannot read it."""
    module = DeviceModule(ir_text)
    return tuple(_effects(module, name) for name in module.kernels)


def _effects(module: DeviceModule, name: str) -> KernelEffects:
    if module.is_replaceable(name):
        return KernelEffects(
            name, display_name(name), opaque="another file may replace it", order=frozenset({"unseen"})
        )
    found = Solver(module, name).solve()
    touched = {} if found.opaque else module.footprints(name)
    order = found.order | ({"spin"} if module.waits_for_others(name) else set())
    fields: dict[int, list[tuple[int, RootEffect]]] = {}
    symbols: list[tuple[str, RootEffect]] = []
    for base, effect in found.roots.items():
        if isinstance(base, str):
            symbols.append((base, effect))
        else:
            footprint = touched.get(base[0]) if base[1] == 0 and effect.direct else None
            fields.setdefault(base[0], []).append((base[1], replace(effect, footprint=footprint)))
    return KernelEffects(
        name=name,
        display=display_name(name),
        params=tuple(ParamEffect(i, tuple(sorted(f, key=lambda one: one[0]))) for i, f in sorted(fields.items())),
        symbols=tuple(sorted(symbols, key=lambda one: one[0])),
        opaque=found.opaque,
        order=frozenset(order),
        keeps=module.keeps_addresses(name),
    )
