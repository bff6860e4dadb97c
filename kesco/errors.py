"""Errors that end a command, each with its documented exit code.

0 done · 2 usage · 3 input not supported · 4 verification failed (our bug) · 5 toolchain missing.
"""

from __future__ import annotations

from kesco.diagnostics import Diagnostic
from kesco.source import Span


class KescoError(Exception):
    """Base of all errors that a user may see; carries the diagnostics to print."""

    exit_code = 3

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__("; ".join(d.message for d in diagnostics))
        self.diagnostics = diagnostics


class UsageError(KescoError):
    """The command line asks for something that makes no sense (exit code 2)."""

    exit_code = 2


class InputError(KescoError):
    """The input cannot be read or is not valid CUDA C++ (exit code 3)."""

    exit_code = 3


class VerificationError(KescoError):
    """The output could not be proven: a bug of kesco's own (exit code 4); `functions` are where, if that is known.

    `heads` tells that calls in conditions of the program may move.
    """

    exit_code = 4

    def __init__(
        self, *diagnostics: Diagnostic, functions: tuple[tuple[str, Span], ...] = (), heads: bool = False
    ) -> None:
        super().__init__(*diagnostics)
        self.functions, self.heads = functions, heads


class ToolchainError(KescoError):
    """clang, libclang or the CUDA headers are missing or unusable (exit code 5)."""

    exit_code = 5
