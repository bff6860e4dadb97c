"""Containers of the library's that hold numbers: ``is_of_numbers(call)``.

In: a call. Out: whether all that it may change is memory of its container's own, in which no pointer is.
"""

from __future__ import annotations

import re

from kesco.analysis.integers import kind_of
from kesco.ir import program as ir

_OF_NUMBERS = re.compile(
    r"(?:const )?std::(?:__cxx11::)?(?:vector|deque|basic_string)"
    r"<(?:(?:unsigned|signed|long|short|char|int|float|double) ?)+>"
)


def is_of_numbers(call: ir.Call) -> bool:
    """Whether it is a member of a container of the library's that holds numbers: it changes nothing else,
    and what it leads to has no other name.
    """
    kind = kind_of(call.receiver) if call.receiver is not None else None
    kind = kind.element if kind is not None and kind.shape is ir.Shape.REFERENCE else kind
    return kind is not None and call.standard and not call.runs and _OF_NUMBERS.fullmatch(kind.spelling) is not None
