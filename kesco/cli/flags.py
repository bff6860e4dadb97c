"""The words behind ``--``: files of options opened, and lists as nvcc takes them apart, where clang cannot mean those.

In: flags as the user gave them. Out: the same with a word for each member. To nvcc ``-I a,b`` names two folders and
``-DA,B`` two macros, to clang one. Folders are looked for; of macros nobody can tell, so they are refused (K104).
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError
from kesco.toolchain.places import cache_folder
from kesco.wrapper.commandline import Unclear, load_table, words_of

_PATHS = ("--include-path", "--system-include", "--pre-include", "-isystem", "-include", "-I")
NVCCS_VARIABLES = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
NOTHING: Mapping[str, str] = {}
_MACROS = ("--define-macro", "--undefine-macro", "-D", "-U")


def taken_apart(flags: Sequence[str], environ: Mapping[str, str] = NOTHING) -> tuple[str, ...]:
    """The flags, each naming one thing; raises `UsageError` for macros that nvcc and clang would read differently.

    `environ` has nvcc's variables, where nvcc itself does not get these flags together with them.
    """
    if flags and not flags[0].startswith(("-", "@")):
        what = f"'{flags[0]}' is one file too many, and no compiler flag"
        step = "run the command for each file, or compile a project with -p; flags go after '--'"
        raise UsageError(Diagnostic("K104", Severity.ERROR, what, help=step))
    result: list[str] = []
    words = iter(opened(flags, environ))
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


def opened(flags: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """The flags with those of nvcc's variables, and with the words of files of options in place of their names.

    Those decide what the text means, too. Raises `UsageError` for what nvcc would read in another way, or not at all.
    """
    names = ("@", "-optf", "--options-file")
    if not any(environ.get(name) for name in NVCCS_VARIABLES) and not any(flag.startswith(names) for flag in flags):
        return list(flags)
    table = load_table("nvcc", str(cache_folder(os.environ) / "build"))
    try:
        found = [word for word, _ in words_of(flags, table, environ, "")]
    except Unclear as problem:
        what = f"it is not known what nvcc makes of it: {problem}"
        raise UsageError(Diagnostic("K104", Severity.ERROR, what, help="write the flags behind '--'")) from None
    if lost := next((word for word in found if word.startswith("@")), ""):
        what = f"the file of options '{lost[1:]}' cannot be read"
        raise UsageError(Diagnostic("K104", Severity.ERROR, what, help="check the path; it counts from this folder"))
    return found


def in_one_argument(flags: str) -> tuple[str, ...]:
    """The flags in an option's value, as a shell would read them; raises `UsageError` if it could not."""
    try:
        return taken_apart(shlex.split(flags))
    except ValueError as problem:
        what = f"--flags cannot be read: {problem}"
        raise UsageError(Diagnostic("K104", Severity.ERROR, what, help="close the quotes")) from None


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
