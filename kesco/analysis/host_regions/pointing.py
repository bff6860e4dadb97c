"""Values of the host → the buffers that they lead to.

In: what a pointer may be. Out: buffers, and where in them. What both launches and calls of the runtime ask.
"""

from __future__ import annotations

from dataclasses import dataclass

from kesco.analysis.host.leading import parts_of
from kesco.analysis.host.values import Value
from kesco.analysis.host_regions.watching import Watching
from kesco.analysis.region import Draft
from kesco.ir.access import Buffer
from kesco.ir.flow import Handle


@dataclass(slots=True)
class Pointing:
    """Answers on the paths that are walked."""

    paths: Watching

    def parts(self, value: Value) -> list[tuple[Buffer, int | None]]:
        """The buffers that a pointer may lead to, and where in them if that is known; a null pointer leads nowhere."""
        return parts_of(value, self.paths.buffer)

    def pointed(self, value: Value) -> list[Buffer]:
        """The same without offsets."""
        return list(dict.fromkeys(buffer for buffer, _ in self.parts(value)))

    def symbol(self, mangled: str) -> Buffer:
        """The buffer of a device symbol."""
        return self.paths.buffer(self.paths.engine.resource("symbol", mangled))

    def put_on(self, draft: Draft, handle: Handle | None, name: str) -> None:
        """The site's work goes to a stream: of a serial program, that is one of its own."""
        draft.stream = handle
        if handle is not None and not self.paths.streams:
            draft.foreign = self.paths.now.activation.foreign = True
            self.paths.now.activation.stay_serial(f"{name} uses a stream of its own", draft.span)
            self.paths.file_wide = "on streams of its own the file may watch the work of others"
