"""Which of many tests run: of some kinds one in so many, with ``KESCO_THOROUGH=1`` all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

THOROUGH = bool(os.environ.get("KESCO_THOROUGH"))
_Any = TypeVar("_Any")


def one_in(many: int, every: Iterable[_Any]) -> list[_Any]:
    """One in `many`, from the first on, or all."""
    return list(every)[:: 1 if THOROUGH else many]
