"""Regions of the host's IR wherever there are any, also where the reading of the text would do: to test the former."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from kesco.analysis.host_regions import better
from kesco.ir.flow import Region


@contextmanager
def the_ir() -> Iterator[None]:
    """Compile with them."""

    def either(text: Region, seen: Region | None, *, whole: bool) -> Region:
        return text if seen is None or seen.serial_because else seen

    with mock.patch.object(better, "_either", either), mock.patch.object(better, "hopeful", lambda *_: True):
        yield
