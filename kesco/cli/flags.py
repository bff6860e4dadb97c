"""The words behind ``--``: lists as nvcc takes them apart, where that cannot be what clang means.

In: flags as the user gave them. Out: the same with a word for each member. To nvcc ``-I a,b`` names two folders and
``-DA,B`` two macros, to clang one. Folders are looked for; of macros nobody can tell, so they are refused (K104).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError

_PATHS = ("--include-path", "--system-include", "--pre-include", "-isystem", "-include", "-I")
_MACROS = ("--define-macro", "--undefine-macro", "-D", "-U")


def taken_apart(flags: Sequence[str]) -> tuple[str, ...]:
    """The flags, each naming one thing; raises `UsageError` for macros that nvcc and clang would read differently."""
    result: list[str] = []
    words = iter(flags)
    for word in words:
        name = next((n for n in (*_PATHS, *_MACROS) if word == n or ("," in word and word.startswith(n))), None)
        if name is None:
            result.append(word)
            continue
        value = next(words, "") if word == name else word[len(name) :].removeprefix("=")
        if name in _MACROS:
            if re.search(r"(?<!\\),", re.sub(r'"[^"]*"', "", value)):
                what = f"'{name} {value}' is several macros to nvcc, and one to clang"
                step = r"write an option for each macro, or '\,' where the comma belongs to one"
                raise UsageError(Diagnostic("K104", Severity.ERROR, what, help=step))
            parts = [value.replace("\\,", ",")]
        else:
            parts = [value] if Path(value).exists() else [part for part in value.split(",") if part]
        for part in parts or [value]:
            result += [name, part]
    return tuple(result)
