"""The words behind ``--``: lists as nvcc takes them apart, where that cannot be what clang means.

In: flags as the user gave them. Out: the same with a word for each member. To nvcc ``-I a,b`` names two folders and
``-DA,B`` two macros, to clang one. Folders are looked for; of macros nobody can tell, so they are refused (K104).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import click

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


class Flagged(click.Command):
    """A command that takes compiler flags behind ``--``, and says so to whoever gives them in front of it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; a flag of a compiler that is no option of kesco gets a word on where it goes."""
        given = args[: args.index("--")] if "--" in args else list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as problem:
            flag = next((word for word in given if word.startswith(problem.option_name)), None)
            if flag is None or problem.possibilities:
                raise
            what = f"No such option '{flag}'. If it is the compiler's, it goes behind '--': … -- {flag}"
            raise click.UsageError(what, ctx) from None
