"""``KESCO=check``: what `kesco-nvcc` does so that `kesco check` can run what a build makes.

In: a command. Out: the exit code of nvcc for the same command with more flags. Nothing is rewritten.

1. The program or library is linked with the *shared* CUDA runtime, in whose place the check puts its own.
2. The host's side is compiled without optimisation, with lines and frame pointers, so that places can be named.
3. Each object gets a note of what the check must know of its kernels: a table for the run, and the device code.

A source of which clang cannot make device code is compiled all the same: its kernels count as touching everything, and
one line says why.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from kesco.toolchain.places import cache_folder
from kesco.wrapper.commandline import Command
from kesco.wrapper.files import write_whole
from kesco.wrapper.running import end_as

NOTE, TABLE, CODE, FOLDER = b"kesco\0", 1, 2, 3
HOST = "-O0,-gdwarf-4,-g1,-gno-column-info,-fno-omit-frame-pointer,-fno-optimize-sibling-calls"
_CODE = "K706"
_MEANS = ("-O", "--optimize", "-cudart", "--cudart")  # what is said by these is said otherwise here
_OTHER = ("--dryrun", "-dryrun", "-E", "--preprocess", "-M", "-MM", "--help", "-h", "--version", "-V")
# The device's passes read it, too, and have no notes.
_INCLUDED = """\
#ifndef __CUDA_ARCH__
__asm__(".pushsection .note.kesco,\\"a\\",@note\\n.balign 4\\n.incbin \\"{}\\"\\n.popsection");
#endif
"""


def run(compiler: str, arguments: Sequence[str], command: Command, say: Callable[[str], None]) -> int:
    """Run the command as the check needs it."""
    if command.passed in _OTHER or any(one in _OTHER for one in arguments):
        os.execv(compiler, [compiler, *arguments])
    words = [*_kept(arguments), "-cudart", "shared", "-Xcompiler", HOST]
    if command.sources:
        words += ["-include", str(_header(command, say))]
    done = subprocess.run([compiler, *words], check=False)
    return end_as(done.returncode << 8 if done.returncode >= 0 else -done.returncode, 0)


def _header(command: Command, say: Callable[[str], None]) -> Path:
    """What the sources must include; it stays where it is, since a build may remember that they do."""
    data = note(FOLDER, os.fsencode(os.getcwd()))
    for source in command.sources:
        data += _notes(source, command.flags, say)
    folder = cache_folder(os.environ) / "check" / hashlib.sha256(data).hexdigest()[:32]
    folder.mkdir(parents=True, exist_ok=True)
    notes, header = folder / "notes", folder / "notes.h"
    if not header.is_file():
        write_whole(str(notes), data)
        write_whole(str(header), _INCLUDED.format(notes).encode())
    return header


def _kept(arguments: Sequence[str]) -> list[str]:
    """The words but for those that optimise the host's side or choose another runtime."""
    kept: list[str] = []
    last = ""
    for word in arguments:
        if last.startswith(("-X", "--compiler-options")) or not (
            last in ("-O", "--optimize", "-cudart", "--cudart") or word.startswith(_MEANS)
        ):
            kept.append(word)
        last = word
    return kept


def _notes(source: str, flags: Sequence[str], say: Callable[[str], None]) -> bytes:
    from kesco.check.kernels import kernel_table, known_of
    from kesco.errors import KescoError
    from kesco.toolchain.compile import device_ir
    from kesco.toolchain.discover import discover

    try:
        text = device_ir(discover(), source, tuple(flags))
        known = known_of([text])
        table = kernel_table(known.effects, known.sizes)
    except KescoError as problem:
        first = problem.diagnostics[0]
        say(f"kesco-nvcc: {source}: its kernels count as touching everything [{_CODE}]: {first.message}")
        return b""
    return note(TABLE, table.encode()) + note(CODE, zlib.compress(text.encode(), 6))


def note(kind: int, data: bytes) -> bytes:
    """One ELF note."""
    head = b"".join(number.to_bytes(4, "little") for number in (len(NOTE), len(data), kind))
    return head + _padded(NOTE) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
