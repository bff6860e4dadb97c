"""What a proof found: `Verdict`, and `explain`, which says what is wrong as a diagnostic.

Apart from the proof because whoever asks for one only reads this.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.ir.access import Buffer
from kesco.ir.flow import Region, Role, Site
from kesco.verify.match import is_work


class Rule(enum.Enum):
    """What was broken."""

    CONFLICT = "conflict"  # two pieces of device work touch the same memory and nothing orders them
    HOST = "host"  # the host looks before the device is done, where the serial program had waited
    JOIN = "join"  # the legacy default stream is not ordered after work that is pending at a join or exit
    FOREIGN = "foreign"  # work of a callee on streams that are not seen here is not waited for
    REVERSED = "reversed"  # conflicting operations are issued in another order than in the serial program


@dataclass(frozen=True, slots=True)
class Unordered:
    """`second` must come after `first` (sites of the concurrent region), and may not.

    `buffer` is None where the order matters whatever is touched. `kinds` holds the hazards. `path` is a
    shortest way of control from `first` to `second`, or the other way round where they are reversed.
    """

    first: Site
    second: Site
    buffer: Buffer | None
    kinds: tuple[str, ...]
    path: tuple[int, ...]
    rule: Rule


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the proof found: `sites` paired, `pairs` of them in conflict, and the text's `waits` and `events`."""

    unordered: tuple[Unordered, ...] = ()
    unmatched: tuple[str, ...] = ()
    sites: int = 0
    pairs: int = 0
    waits: int = 0
    events: int = 0

    @property
    def ok(self) -> bool:
        """Whether the order is proven."""
        return not self.unordered and not self.unmatched


def explain(unordered: Unordered, region: Region) -> Diagnostic:
    """The finding as a diagnostic; `region` is the concurrent one."""
    rule, second = unordered.rule, unordered.second.label
    first = "what ran before the function" if unordered.first.role is Role.ENTRY else unordered.first.label
    hazard = "whatever it touches"
    if unordered.buffer:
        hazard = f"{', '.join(unordered.kinds)} on '{unordered.buffer.name}'"
    message, advice = {
        Rule.CONFLICT: (
            f"'{second}' may run before '{first}' is done ({hazard})",
            f"record an event right after '{first}' and make the stream of '{second}' wait for it",
        ),
        Rule.HOST: (
            f"'{first}' may not be done when the host reaches '{second}' ({hazard}); the serial program waits",
            f"synchronize with the stream of '{first}' before '{second}'",
        ),
        Rule.JOIN: (
            f"'{first}' is not joined to the default stream at '{second}' ({hazard})",
            f"record an event after '{first}' and make the default stream wait for it before '{second}'",
        ),
        Rule.FOREIGN: (
            f"'{second}' does not wait for what '{first}' may have put on other streams ({hazard})",
            f"put a device synchronize or work on the default stream between '{first}' and '{second}'",
        ),
        Rule.REVERSED: (
            f"'{second}' may be issued before '{first}', unlike in the serial program ({hazard})",
            "issue conflicting operations in the order of the serial program",
        ),
    }[rule]
    notes = (
        Note(f"this must come first: '{first}'{_place(unordered.first)}", unordered.first.span),
        Note(f"this must come second: '{second}'{_place(unordered.second)}", unordered.second.span),
        Note("on the path " + _in_words(unordered.path, region)),
    )
    return Diagnostic("K401", Severity.ERROR, message, unordered.second.span, notes, advice)


def _place(site: Site) -> str:
    if not is_work(site):
        return " on the host" if site.role is Role.HOST else ""
    if site.stream is None:
        return " on the legacy default stream"
    return f" on stream '{site.stream.name}'" + ("" if site.stream.certain else ", one of several")


def _in_words(path: tuple[int, ...], region: Region) -> str:
    sites = (one for one in map(region.sites.__getitem__, path) if one.mark is None)
    steps = [f"{one.label} (line {one.span.line})" for one in sites]
    if len(steps) > 9:
        steps[4:-4] = [f"{len(steps) - 8} more"]
    return " → ".join(steps)
