"""The page that leads to the pages of a project's sources.

In: a line for each source. Out: the text of one HTML file, which needs nothing else; it links to the pages by relative
addresses, and has no script. Apart from the page of one file because it knows nothing of operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kesco.report.page import environment, style_and_digest


@dataclass(frozen=True, slots=True)
class Entry:
    """One source: `link` is where its page is, relative to the index, empty where it has none.

    `result` is ``rewritten``, ``unchanged`` or ``failed``; numbers are words, since only a rewritten one has them.
    `codes` are those of its diagnostics.
    """

    name: str
    link: str
    result: str
    functions: str = ""
    streams: str = ""
    waits: str = ""
    codes: str = ""


def index(title: str, path: str, entries: Sequence[Entry]) -> str:
    """The page; `path` says where the project is."""
    counts = {result: sum(one.result == result for one in entries) for result in ("rewritten", "unchanged", "failed")}
    tiles = [(str(len(entries)), "files"), *((str(count), result) for result, count in counts.items())]
    style, digest = style_and_digest()
    made = (
        environment()
        .get_template("index.html.j2")
        .render(title=title, path=path, rows=entries, tiles=tiles, style=style, digest=digest)
    )
    return made.encode("utf-8", "replace").decode()
