"""The prologue: streams and events of the file, from a template.

In: how many of each. Out: text. The verifier compares the prologue it finds with this text byte by byte, so that it may
rely on what the names in it mean.
"""

from __future__ import annotations

import re
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

    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string(_template()).render(streams=streams, events=events, guards=guards)


_SIZES = re.compile(r"cudaStream_t stream\[(\d+)\] = \{\};\n  cudaEvent_t done\[(\d+)\] = \{\};")


def is_genuine(text: bytes) -> bool:
    """Whether a file's names in kesco's manner mean what `prologue` says: its own prologue, once, or none at all."""
    normal = text.replace(b"\r\n", b"\n").decode("utf-8", "surrogateescape")
    start, end = normal.find(MARK), normal.find(END)
    if start < 0:
        return re.search(r"\bkesco_(?:streams|streams_if_distinct|context)\s*\(", normal) is None
    if end < start or normal.count(MARK) != 1:
        return False
    written = normal[start : normal.find("\n", end) + 1]
    sizes = _SIZES.search(written)
    if sizes is None:
        return False
    return written == prologue(int(sizes[1]), int(sizes[2]), "kesco_streams_if_distinct" in written)


def stand_in(text: bytes) -> bytes:
    """The text with its genuine prologue replaced by bare declarations of the same length and the same lines.

    What the prologue says is known already, since it was compared byte by byte; what it includes need not be parsed
    again.
    """
    start, end = text.find(MARK.encode()), text.find(END.encode())
    if start < 0 or end < start:
        return text
    written = text[start:end]
    sizes = _SIZES.search(written.replace(b"\r\n", b"\n").decode())
    if sizes is None:
        return text
    streams, events = sizes[1], sizes[2]
    short = (
        f"namespace {{ struct KescoStreams {{ cudaStream_t stream[{streams}]; cudaEvent_t done[{events}]; "
        f"cudaEvent_t tail[{streams}]; }}; KescoStreams& kesco_streams(); "
        "template <typename... P> KescoStreams& kesco_streams_if_distinct(const P*...); }"
    ).encode()
    lines = written.count(b"\n")
    return text[:start] + short + b" " * (len(written) - len(short) - lines) + b"\n" * lines + text[end:]
