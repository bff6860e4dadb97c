"""Device IR → which arguments decide what a kernel touches, for loops whose turns have buffers of their own.

In: the IR of the device side and the kernels' effects. Out: kernel → parameter → the numbers of the parameters that
decide (`ir.turns.Steering`). A stage of its own because it is asked for only where there is such a loop.

1. `device_steering` says which bytes of the arguments decide, and whether memory does. 2. Where memory does, the
parameter is left out; its own pointer counts for nothing, since all that is asked is which bytes *from there on* are
touched. 3. A kernel that may keep an address, is not seen, or does anything in an observable order is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kesco.analysis.device_steering import MEMORY, kernel_steering
from kesco.ir.effects import KernelEffects
from kesco.ir.turns import Steering

_PLAIN = re.compile(r"[<(]")  # a name ends there


def turn_steering(texts: Iterable[str], effects: Mapping[str, KernelEffects]) -> Steering:
    """What decides, kernel by kernel; of two modules that have one, what decides in either."""
    found: dict[str, dict[int, frozenset[int]]] = {}
    for text in texts:
        for name, steering in kernel_steering(text, by_memory=True).items():
            known = effects.get(name)
            if known is None or known.opaque or known.order or known.keeps or known.outputs is not None:
                continue
            plain = {one.index: [offset for offset, _ in one.fields] for one in known.params}
            here = {
                index: frozenset(one.argument for one in steering[index, 0] if one.argument != index)
                for index, fields in plain.items()
                if fields == [0] and (index, 0) in steering and MEMORY not in steering[index, 0]
            }
            before = found.get(name)
            both = here if before is None else {i: here[i] | before[i] for i in here.keys() & before.keys()}
            found[name] = both
    return {**found, **_of_templates(found, effects)}


def _of_templates(found: Steering, effects: Mapping[str, KernelEffects]) -> dict[str, dict[int, frozenset[int]]]:
    """What decides in any kernel of a name, by which a template that is no instance yet names them (`ir.Kernel`)."""
    groups: dict[str, list[str]] = {}
    for name, known in effects.items():
        groups.setdefault(f"?{_PLAIN.split(known.display)[0].rpartition('::')[2].strip()}", []).append(name)
    merged: dict[str, dict[int, frozenset[int]]] = {}
    for name, kernels in groups.items():
        every = [found.get(kernel, {}) for kernel in kernels]
        common = every[0].keys() & frozenset.intersection(*(frozenset(one) for one in every))
        merged[name] = {index: frozenset().union(*(one[index] for one in every)) for index in common}
    return merged
