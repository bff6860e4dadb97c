"""The time lines of a race: the two operations, what else their streams did between them, and what stands behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from unit.test_races import EFFECTS, HEAD, four_bytes, reads, write

from kesco.check import messages
from kesco.check.places import Places
from kesco.source import Span
from kesco.verify.races import find_races
from kesco.verify.trace import Module, read


@dataclass
class Lines(Places):
    """A stack's number is its line."""

    stacks: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    modules: Sequence[Module] = ()

    def stack(self, number: int) -> tuple[Span, ...]:
        return (Span("a.cu", 0, 0, number, 1),)

    def name(self, number: int) -> str:
        return ""


def said(*lines: str) -> tuple[str, str]:
    """The time lines of the one race, and the help."""
    findings = find_races(read(HEAD + "\n".join(lines) + "\n").events, EFFECTS, asked=four_bytes)
    (one,) = messages.races(findings, Lines())
    (drawn,) = [note.message for note in one.notes if note.message.startswith("in the order")]
    return drawn, one.help


def test_what_two_streams_did_between_the_two() -> None:
    drawn, help_ = said("M 1 5 cudaMemsetAsync 0 w:1800:4", write(1), "R 7 1 6", "R 8 3 6", "W 9 2 7", reads(2))
    assert drawn.splitlines() == [
        "in the order of issue:",
        "             stream 1        stream 2",
        "    line 11  w ◀ first",
        "    line 6   record event 7",
        "    line 7                   wait for event 9",
        "    line 22                  r ◀ second",
    ]
    assert help_.startswith(
        "event 7, recorded in line 6, stands behind the first one: let the second one's stream wait"
    )


def test_a_record_before_the_first_one_orders_nothing() -> None:
    drawn, help_ = said("R 7 1 6", write(1), "W 7 2 7", reads(2))
    assert "record event 7" not in drawn
    assert help_.startswith("record an event on the first one's stream behind line 11")


def test_much_between_the_two_is_left_out() -> None:
    between = [f"M 1 {100 + i} cudaMemsetAsync 0 w:1800:4" for i in range(50)]
    drawn, _ = said(write(1), *between, "H s 3 9", reads(2))
    lines = drawn.splitlines()
    assert len(lines) < 14
    assert ("◀ first" in lines[2], "◀ second" in lines[-1]) == (True, True)


def test_the_host_has_a_line_of_its_own() -> None:
    drawn, _ = said("M 1 5 cudaMemcpyAsync 0 r:1000:64 w:9000:64", "H s 2 8", "T r 9000 6")
    assert drawn.splitlines()[1:] == [
        "            stream 1                 the host",
        "    line 5  cudaMemcpyAsync ◀ first",
        "    line 8                           wait for stream 2",
        "    line 6                           the host ◀ second",
    ]
