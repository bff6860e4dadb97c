"""What the commands share: diagnostics on standard error, errors as exit codes, files written whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from kesco.diagnostics import Diagnostic, Severity, render
from kesco.errors import KescoError, UsageError
from kesco.ir.pieces import Copy
from kesco.source import Span


def _line_of(span: Span) -> str | None:
    try:
        lines = Path(span.path).read_bytes().splitlines()
    except OSError:
        return None
    if not 0 < span.line <= len(lines):
        return None
    return lines[span.line - 1].decode("utf-8", "replace")


class Printer:
    """Prints diagnostics, as text or as JSON, to standard error."""

    def __init__(self, form: str, quiet: bool) -> None:
        self.form, self.quiet = form, quiet

    def __call__(self, *diagnostics: Diagnostic) -> None:
        """Print them."""
        shown = [d for d in diagnostics if not self.quiet or d.severity is Severity.ERROR]
        if self.form == "json":
            click.echo(json.dumps([d.to_json() for d in shown], indent=2), err=True)
            return
        colours = {Severity.ERROR: "red", Severity.WARNING: "magenta", Severity.REMARK: "blue"}
        for one in shown:
            text = render(one, _line_of)
            word = f"{one.severity.value}[{one.code}]"
            text = text.replace(word, click.style(word, fg=colours[one.severity], bold=True), 1)
            click.echo(text, err=True, color=False if os.environ.get("NO_COLOR") else None)  # see no-color.org


@contextlib.contextmanager
def ends_well(printer: Printer) -> Iterator[None]:
    """Turn kesco's errors into messages and exit codes; nothing else may come out as a traceback."""
    try:
        yield
    except KescoError as error:
        printer(*error.diagnostics)
        sys.exit(error.exit_code)
    except OSError as error:
        printer(refused(error))
        sys.exit(3)


def refused(error: OSError) -> Diagnostic:
    """What the file system had against it."""
    what = f"{error.filename or 'the file system'}: {error.strerror}"
    step = "it is as it was; free space or choose another place, then run the command again"
    return Diagnostic("K103", Severity.ERROR, what, help=step)


def writable(target: Path) -> None:
    """Complain before the work, not after it."""
    folder = target.parent
    if not folder.is_dir():
        raise UsageError(
            Diagnostic(
                "K104", Severity.ERROR, f"there is no folder {folder}", help="create it or choose another place with -o"
            )
        )
    if not os.access(folder, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise UsageError(
            Diagnostic(
                "K104",
                Severity.ERROR,
                f"{target} cannot be written: permission denied",
                help="choose another place with -o",
            )
        )


def beside(target: Path, headers: Sequence[Copy]) -> dict[Path, bytes]:
    """Where the copies of headers go; raises `UsageError` where that is a file that kesco did not write."""
    places = {target.with_name(one.name): one.text for one in headers}
    for place in places:
        if place.exists() and not (place.is_file() and b"kesco" in place.read_bytes()):
            what = f"{place}, the name of an edited header, is another file"
            raise UsageError(Diagnostic("K104", Severity.ERROR, what, help="choose another name with -o"))
    return places


def write_whole(target: Path, data: bytes) -> None:
    """Write a file completely or not at all: a temporary file beside it, then a rename.

    A symbolic link is followed; something that is no regular file (a pipe, a terminal) is written to as it is.
    """
    write_together({target: data})


def write_together(files: Mapping[Path, bytes]) -> None:
    """Write files so that all of them are there in full, beside their places, before the first takes its place."""
    ready: list[tuple[Path, Path]] = []
    target = Path()
    try:
        for name, data in files.items():
            target = name.resolve()
            if target.exists() and not target.is_file():
                with target.open("wb") as stream:
                    stream.write(data)
            else:
                ready.append((_beside(target, data), target))
        for made, target in ready:
            made.replace(target)
    except BaseException as problem:
        for made, _ in ready:
            with contextlib.suppress(OSError):
                made.unlink()
        if isinstance(problem, OSError):  # of the temporary file, or of none: the user named another
            problem.filename, problem.filename2 = str(target), None
        raise


def _beside(target: Path, data: bytes) -> Path:
    """A temporary file with what is to be in another one beside it."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    made = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        made.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
    except BaseException:
        with contextlib.suppress(OSError):
            made.unlink()
        raise
    return made


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
