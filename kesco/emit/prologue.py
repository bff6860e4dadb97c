"""The prologue: streams and events of the file, from a template.

In: how many of each. Out: text. The verifier compares the prologue it finds with this text byte by byte, so that it may
rely on what the names in it mean.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

MARK = "// ---- kesco: streams and events of this file"
END = "// ---- kesco: end"


@cache
def _template() -> str:
    return files("kesco.emit").joinpath("templates/prologue.cu.j2").read_text("utf-8")


def prologue(streams: int, events: int, guards: bool) -> str:
    """The text that defines ``KescoStreams`` and ``kesco_streams()``."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    return environment.from_string(_template()).render(streams=streams, events=events, guards=guards)
