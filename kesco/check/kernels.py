"""What the check must know of kernels, from the device code of a program's files.

In: device code as LLVM IR. Out: a `Known`: what each kernel reads and writes, what decides where, which bytes a launch
touches, the sizes of its parameters; and the table by which the recorder knows which bytes of a launch are arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kesco.ir.access import AccessMode
from kesco.ir.effects import KernelEffects, Steering
from kesco.ir.touched import Asked


class Known(NamedTuple):
    """By kernel; `touches` answers for a launch."""

    effects: Mapping[str, KernelEffects]
    steering: Mapping[str, Steering]
    touches: Asked
    sizes: Mapping[str, tuple[int, ...]]


def known_of(texts: Sequence[str]) -> Known:
    """What is known of the kernels of all these files; of two of one name what holds for either."""
    from kesco.analysis.device_steering import kernel_steering
    from kesco.analysis.device_touches import KernelTouches
    from kesco.analysis.effects import kernel_effects
    from kesco.analysis.kernel_parameters import kernel_parameters

    effects: dict[str, KernelEffects] = {}
    steering: dict[str, Steering] = {}
    sizes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        sizes |= kernel_parameters(text)
        for name, one in kernel_steering(text).items():
            steering[name] = one if steering.get(name, one) == one else {}
        for effect in kernel_effects(text):
            effects[effect.name] = effects[effect.name] | effect if effect.name in effects else effect
    return Known(effects, steering, KernelTouches(texts), sizes)


def kernel_table(effects: Mapping[str, KernelEffects], sizes: Mapping[str, tuple[int, ...]]) -> str:
    """What the recorder must know of each kernel, a line each.

    First the name, then the size of each parameter; ``*parameter:offset`` for each pointer behind which it follows
    other pointers, and ``@symbol`` for device symbols of that kind; ``!parameter:offset`` for pointers that it writes
    through. The first line has ``@`` and all symbols.
    """
    lines = [" ".join(["@", *sorted({name for one in effects.values() for name, _ in one.symbols})])]
    for name, known in sorted(sizes.items()):
        effect = effects.get(name)
        words = [name, *map(str, known)]
        if effect is not None:
            fields = [(p.index, offset, root) for p in effect.params for offset, root in p.fields]
            words += [f"*{index}:{offset}" for index, offset, root in fields if root.deep]
            written = ((i, offset) for i, offset, root in fields if AccessMode.WRITE in root.direct and offset >= 0)
            words += [f"!{index}:{offset}" for index, offset in written]
            words += [f"@{symbol}" for symbol, root in effect.symbols if root.deep]
        lines.append(" ".join(words))
    return "\n".join([*lines, ""])
