"""For which GPU architectures a source must be read: for each one for which its kernels may do something else.

In: the user's texts and flags, and the toolkit's version. Out: architectures. A kernel does what it does for any of
those it is built for. A text that never asks for the value of ``__CUDA_ARCH__`` means the same for all, and costs one
reading. Where flags name several, a text in which nothing has to do with architectures is read for the highest; any
other, also one that only asks whether it is compiled for the device and so may include another header there, for each.

Where nobody says for which it is built, nvcc takes one of its own choice, and another command may build the result
later. Then there is one architecture for each way in which the texts may tell them apart:

1. Take the numbers in the texts with which architectures may be compared: ``800``, or ``80`` where that is divided.
2. Architectures that compare alike with all of them are one class. Of each the default is taken, or the one nearest
   below it, which more versions of clang know than those above. What the toolkit cannot build for is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from kesco.errors import InputError, ToolchainError
from kesco.toolchain.compile import device_ir
from kesco.toolchain.flags import translate
from kesco.toolchain.model import Toolchain

_ASKED = re.compile(rb"__CUDA_ARCH__\b")
_WHETHER = re.compile(
    rb"\bdefined[ \t]*\(\s*__CUDA_ARCH__\s*\)|\bdefined[ \t]+__CUDA_ARCH__\b|\bifn?def[ \t]+__CUDA_ARCH__\b"
    rb"|\bundef[ \t]+__CUDA_ARCH__\b"
)
_ABOUT = re.compile(rb"__CUDA_ARCH|\bNV_[A-Z]|_PTX_ARCH|\b__builtin_nvvm|\barch(?:_|::)")
_NUMBER = re.compile(rb"(?<![\w.])(\d{2,4})[uUlL]*(?![\w.])")
_KNOWN = (50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121)
_LOWEST_OF_13 = 75
_SINCE = {86: (11, 1), 87: (11, 4), 88: (13, 0), 89: (11, 8), 90: (11, 8), 100: (12, 8), 101: (12, 8), 103: (12, 9),
          110: (13, 0), 120: (12, 8), 121: (12, 9)}  # fmt: skip
_UNTIL = {101: (12, 9)}  # which 13 calls 110
_BY_OTHERS = (88, 110)  # clang 22 crashes at any source for these: `device_arguments` has it read for others


def architectures_read(toolchain: Toolchain, flags: Sequence[str], texts: Iterable[bytes]) -> tuple[str, ...]:
    """The architectures for which these texts must be read, the first one first."""
    user = translate(flags)
    if user.architectures:
        texts = (*texts, *map(os.fsencode, user.passed))
        if not any(_ABOUT.search(text) for text in texts) and not user.has("-include", "-imacros"):
            return user.architectures[:1]
        return user.architectures
    if toolchain.choice("architecture").origin != "default":
        return (toolchain.arch,)
    return told_apart((*texts, *map(os.fsencode, flags)), toolchain.cuda_version, toolchain.arch)


def further_device_ir(toolchain: Toolchain, path: str, flags: Sequence[str], architectures: Iterable[str]) -> list[str]:
    """The device IR of a file for these architectures, beside the first.

    Raises `InputError` or `ToolchainError` where one cannot be read.
    """
    if translate(flags).architectures:
        return [device_ir(toolchain, path, flags, arch=arch) for arch in architectures]
    found = []
    for arch in architectures:
        try:
            found.append(device_ir(toolchain, path, flags, arch=arch))
        except (InputError, ToolchainError) as error:
            step = f"the code asks for __CUDA_ARCH__, so it was read for {arch}, too; name the GPU you build for: "
            told = (replace(d, help=f"{step}-arch={toolchain.arch}") for d in error.diagnostics)
            raise type(error)(*told) from None
    return found


def told_apart(texts: Iterable[bytes], cuda_version: str | None, default: str) -> tuple[str, ...]:
    """Architectures such as ``sm_75``, `default` first, that show all that these texts may mean."""
    asking = list(texts)
    if not any(_ASKED.search(_WHETHER.sub(b"", text)) for text in asking):
        return (default,)
    first = int(re.sub(r"\D", "", default))
    numbers = sorted({int(found) for text in asking for found in _NUMBER.findall(text)})
    bounds = [one for one in numbers if one >= 100] + [10 * one for one in numbers if 20 <= one < 200]
    major, minor, *_ = (*map(int, re.findall(r"\d+", cuda_version or "13.0")), 0)
    low = _LOWEST_OF_13 if major >= 13 else _KNOWN[0]
    known = (n for n in _KNOWN if n >= low and _SINCE.get(n, (0, 0)) <= (major, minor) <= _UNTIL.get(n, (99, 0)))
    classes: dict[tuple[int, ...], list[int]] = {}
    for one in (first, *(number for number in known if number != first)):
        marks = tuple((10 * one > bound) - (10 * one < bound) for bound in bounds)
        classes.setdefault(marks, []).append(one)
    chosen = [_nearest(members, first) for members in classes.values()]
    return (default, *(f"sm_{one}" for one in chosen if one != first))


def _nearest(members: list[int], first: int) -> int:
    """The highest of the members that is not above `first`, or the lowest of all; of those that clang reads, if any."""
    members = [one for one in members if one not in _BY_OTHERS] or members
    return max((one for one in members if one <= first), default=min(members))
