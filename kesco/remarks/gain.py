"""What the model expects of a function with a profile, in words: K210 and K211.

In: a region, what is expected, and why it was left serial, if it was. Out: remarks, whose data are the numbers.
"""

from __future__ import annotations

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.ir.costs import Expected
from kesco.ir.flow import Region

_REFUSED = "expected gain"
_LONGEST = 6  # operations of the critical path that are named


def is_refused(left_because: str) -> bool:
    """Whether a function was left serial because the model expects no gain."""
    return left_because.startswith(_REFUSED)


def gain(region: Region, expected: Expected | None, left_because: str) -> list[Diagnostic]:
    """The remark about a function that was rewritten, or left as it is because of what the model says."""
    if expected is None or (left_because and not is_refused(left_because)):
        return []
    notes = (Note(_times(expected)), Note(_path(expected)), *_unmeasured(expected))
    if left_because:
        message = f"'{region.function}': {left_because}: left serial"
        help_ = "--force to override"
        return [Diagnostic("K211", Severity.REMARK, message, region.span, notes, help_, expected.to_json())]
    message = f"'{region.function}': expected gain {expected.gain * 100:.1f} %"
    return [Diagnostic("K210", Severity.REMARK, message, region.span, notes, data=expected.to_json())]


def _times(one: Expected) -> str:
    streams = "stream" if one.streams == 1 else "streams"
    return f"the model takes {_us(one.serial)} serial, {_us(one.concurrent)} on {one.streams} {streams}"


def _path(one: Expected) -> str:
    shown = one.path if len(one.path) <= _LONGEST else (*one.path[: _LONGEST - 1], "…", one.path[-1])
    return f"critical path {_us(one.critical)}: {' → '.join(shown)}"


def _unmeasured(one: Expected) -> list[Note]:
    if one.known:
        return []
    return [
        Note(f"{one.measured} of {one.operations} operations were measured; the others count 50 µs, or as never run")
    ]


def _us(microseconds: float) -> str:
    """A time with three digits that count."""
    if microseconds < 1000:
        return f"{microseconds:.1f} µs"
    return f"{microseconds / 1000:.2f} ms" if microseconds < 1e6 else f"{microseconds / 1e6:.3f} s"
