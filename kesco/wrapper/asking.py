"""What kesco makes of sources: looked up in the cache, or found out by a process of its own (`analyse`).

In: sources, the flags that decide what they mean, the compiler. Out: an entry for each. What stands in a compiler's
place (`front`) and what a compiler asks by itself (`plugin`) share this; it loads as little as they do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from kesco.wrapper import entries
from kesco.wrapper.files import digest, read
from kesco.wrapper.running import Child
from kesco.wrapper.settings import DECIDING, Settings

_WORTH_A_LOOK = (b"<<<", b"cudaLaunch", b"Async")
"""Without one of these a text has nothing that kesco could move."""
_HEADERS = (b'.cuh"', b'.cu"')
"""What the includes end with that may bring functions that launch."""
_ANY_LAUNCH = frozenset({"page", "force", "fikit", "prefetch", "emit", "copies"})
"""Options with which something may be made, or told, of a source that has a single launch."""
_ANALYSE = "import sys; sys.path.insert(0, sys.argv[1]); from kesco.wrapper.analyse import main; main(sys.argv[2])"
_LIMIT = 64 << 20  # bytes of a source


def worth_a_look(source: str, settings: Settings) -> bytes:
    """The text of a source, empty where it has no word of interest; raises `OSError` if it cannot be read."""
    text = read(source) if os.stat(source).st_size < _LIMIT else b""
    wanted = (*_WORTH_A_LOOK, *_HEADERS, *((b"cudaMemcpy",) if settings.options.get("copies") == "move" else ()))
    return text if any(word in text for word in wanted) else b""


def may_gain(text: bytes, settings: Settings) -> bool:
    """Whether kesco may have something to do in such a text; for those of which nothing is known yet."""
    if not _ANY_LAUNCH.isdisjoint(settings.options):
        return True
    from kesco.wrapper.single import may_overlap

    return any(word in text for word in _HEADERS) or may_overlap(text)


def common(who: tuple[str, str, str], settings: Settings, flags: Sequence[str]) -> list[bytes]:
    """What decides the entries of all sources of a command, beside the sources.

    `who` asks: its name, its compiler, and what identifies the host compiler where that is another one.
    """
    name, compiler, host = who
    options = sorted(f"{k}={v}" for k, v in settings.options.items())
    parts = [name, entries.identity(compiler), host, os.getcwd(), str(settings.timeout)]
    parts += [f"{v}={os.environ.get(v, '')}" for v in DECIDING]
    lists = (digest(map(os.fsencode, words)) for words in (parts, options, flags))
    return [entries.stamp(), *(one.encode() for one in lists)]


def start(request: str, question: Mapping[str, object]) -> Child:
    """Start the process that answers a question; the answers are files beside the one named `request`."""
    import json

    with open(request, "x", encoding="utf-8") as file:
        json.dump(question, file)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    words = [sys.executable, "-P", "-c", _ANALYSE, root, request]  # -P: nothing from the build's own folder
    kept = os.path.join(os.path.dirname(request), "asked")
    environ = {**os.environ, "KESCO": "off"}  # clang may load kesco's plugin there, too
    return Child(sys.executable, words, environ, kept=kept, apart=True)


def finish(
    asked: Child, request: str, unknown: Mapping[str, tuple[str, str]], settings: Settings
) -> dict[str, entries.Entry]:
    """Wait for the answers to `unknown`, sources with keys and digests; where there is none, an entry that says why."""
    in_time = asked.wait(settings.timeout * len(unknown))
    asked.end()
    found = {}
    for number, (source, (key, _)) in enumerate(unknown.items()):
        try:
            entry = entries.loads(read(f"{request}.{number}"))
        except OSError:
            entry = None
        if entry is None:
            late = f"kesco took more than {settings.timeout:g} s; set KESCO_TIMEOUT to more"
            entry = entries.without_text(f"kesco itself failed: {asked.last_line()}" if in_time else late)
            if not in_time and not _crowded():  # it would be too late the next time, too
                entries.store(settings.cache, key, entries.dumps(entry))
        found[source] = entry
    return found


def _crowded() -> bool:
    """Whether so much else runs that a source may have been late for that alone."""
    return os.getloadavg()[0] > 2 * (os.cpu_count() or 1)
