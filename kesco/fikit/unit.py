"""The unit with which systemd keeps the daemon of a GPU running for a user.

In: what `kesco fikit serve` is given, and for which GPU. Out: the unit's text, with the paths of this installation. A
service has neither the shell's folder nor its variables: so files are named from the root.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path


def unit(words: Sequence[str], gpu: str) -> str:
    """A unit that runs ``kesco fikit serve`` with these words."""
    from jinja2 import Environment, StrictUndefined

    text = files("kesco.fikit").joinpath("templates/kesco-fikit.service.j2").read_text("utf-8")
    template = Environment(undefined=StrictUndefined, keep_trailing_newline=True).from_string(text)
    command = " ".join(map(quoted, (*this_program(), "fikit", "serve", *words)))
    return template.render(command=command, gpu=gpu.replace("%", "%%"))


def this_program() -> tuple[str, ...]:
    """How this kesco is begun from anywhere."""
    script = Path(sysconfig.get_path("scripts")) / "kesco"
    return (str(script),) if os.access(script, os.X_OK) else (sys.executable, "-m", "kesco")


def quoted(word: str) -> str:
    """One word of a command as systemd reads it: see systemd.service(5)."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("%", "%%").replace("$", "$$")
    return f'"{plain}"' if not word or any(one in word for one in " \t\n\"'\\;") else plain
