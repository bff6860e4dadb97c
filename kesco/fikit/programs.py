"""The two programs of the FIKIT runtime, the client and the daemon, from ``kesco/runtime/fikit``.

In: the environment, for the compiler and the cache. Out: their paths. They need no CUDA, neither headers nor libraries,
and carry the C++ library in them, so that they load into any program. A wheel has them; otherwise they are made.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from kesco.toolchain.native import built, shipped
from kesco.toolchain.runtimes import SOURCES

CLIENT = "libkesco_fikit.so"
DAEMON = "kesco-fikitd"
_CLIENT = ("client", "attachment", "clock", "credit", "driver", "greeting", "hooks", "intercept", "intercept_runtime",
           "markers", "measure", "names", "policy_rule", "process", "sample_file")  # fmt: skip
_DAEMON = ("daemon", "server", "door", "listener", "status", "guest", "clock", "profiles", "driver", "costs_file",
           "recorder")  # fmt: skip
_SHOWN = f"-Wl,--version-script={SOURCES / 'fikit' / 'exported.map'}"
_FAST = ("-Wl,-z,nodelete", "-ftls-model=initial-exec")  # in front of the program from its start, until its end
_OWN = ("-fvisibility=hidden", "-static-libstdc++", "-static-libgcc", "-Wl,--no-as-needed", "-ldl", "-lpthread")


def client(environ: Mapping[str, str] = os.environ) -> Path:
    """The library that goes in front of a program's driver and has the hooks; `ToolchainError` (K612) without g++."""
    return shipped(CLIENT) or built(CLIENT, _sources(_CLIENT), ("-shared", *_OWN, *_FAST, _SHOWN), environ)


def daemon(environ: Mapping[str, str] = os.environ) -> Path:
    """The program that decides; `ToolchainError` (K612) without g++."""
    policy = sorted((SOURCES / "fikit").glob("policy*.cpp"))
    return shipped(DAEMON) or built(DAEMON, (*_sources(_DAEMON), *policy), _OWN, environ)


def _sources(names: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(SOURCES / "fikit" / f"{name}.cpp" for name in names)
