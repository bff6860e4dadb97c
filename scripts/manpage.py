"""Write the manual page from the commands themselves: ``python scripts/manpage.py > docs/kesco.1``.

A test compares the page with what this makes of the commands now.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kesco import __version__
from kesco.cli import main

EXITS = (
    ("0", "done; also when nothing was changed"),
    ("1", "regress: something got worse; check: a race"),
    ("2", "the command line makes no sense"),
    ("3", "the input is not supported"),
    ("4", "the result could not be proven: a bug of kesco's"),
    ("5", "the toolchain is incomplete: 'kesco doctor' says what to do"),
)


def page() -> str:
    """The whole page as roff."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield f'.TH KESCO 1 "" "kesco {__version__}" "User Commands"'
    yield from (".SH NAME", r"kesco \- turn serial CUDA into concurrent CUDA, and prove it")
    yield from (
        ".SH SYNOPSIS",
        r".B kesco",
        r".I COMMAND",
        "[OPTIONS] FILES [\\-\\- COMPILER FLAGS]",
        ".SH DESCRIPTION",
    )
    yield from _text(main.help or "")
    yield ".SH COMMANDS"
    for name, command in sorted(main.commands.items()):
        if command.hidden:
            continue
        context = click.Context(command, info_name=f"kesco {name}")
        yield f".SS {_escaped(' '.join([f'kesco {name}', *command.collect_usage_pieces(context)]))}"
        yield from _text(command.help or "")
        for one in command.params:
            record = one.get_help_record(context) if isinstance(one, click.Option) else None
            if record is not None:
                yield from (".TP", rf"\fB{_escaped(record[0])}\fR", *_text(record[1]))
    yield ".SH EXIT STATUS"
    for code, what in EXITS:
        yield from (".TP", code, *_text(what))
    yield from (".SH SEE ALSO", "docs/tutorial.md, docs/reference.md and docs/diagnostics.md in kesco's source")


def _text(text: str) -> Iterator[str]:
    for line in textwrap.wrap(" ".join(text.split()), 100):
        escaped = _escaped(line)
        yield rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _escaped(text: str) -> str:
    return text.replace("\\", r"\e").replace("-", r"\-")


if __name__ == "__main__":
    sys.stdout.write(page())
