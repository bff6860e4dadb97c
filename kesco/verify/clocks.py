"""What the host's calls order on the device: vector clocks over streams and the host.

In: the calls of a run, one after another. Out: for each operation the clock it begins with, from which anyone can tell
whether an earlier operation is certainly done by then.

An *agent* is a stream, or the host (`HOST`). Each operation of an agent has a number, its *epoch*; a clock maps agents
to the last epoch of theirs that is done. The rules are those of the CUDA programming guide:

1. An operation begins after all earlier ones of its stream, and after what the host had waited for when it was issued.
2. What is done on the legacy default stream begins after everything on the blocking streams of its device, and they go
   on after it. Recording an event there, waiting there, and synchronizing it count as something done.
3. Waiting for an event means waiting for what its latest record had before it; for a never-recorded one, nothing.
4. A synchronize makes the host wait, and what it issues later begins after that.

Threads of the host count as one agent, ordered as they ran: what orders them is not in the record.
"""

from __future__ import annotations

from dataclasses import dataclass, field

HOST = -1
Clock = dict[int, int]


def join(clock: Clock, other: Clock) -> None:
    """Let the first clock know what the second one knows."""
    for agent, epoch in other.items():
        if clock.get(agent, 0) < epoch:
            clock[agent] = epoch


@dataclass(slots=True)
class _Stream:
    device: int
    kind: str
    clock: Clock = field(default_factory=dict)
    version: int = 0  # goes up whenever the clock changes
    host: int = -1  # the version of the host's clock that it knows
    seen: dict[int, int] = field(default_factory=dict)  # other streams' versions that it knows


class Clocks:
    """The clocks of a run; each method is one call of the host."""

    def __init__(self) -> None:
        self.host: Clock = {HOST: 0}
        self._version = 0
        self._streams: dict[int, _Stream] = {}
        self._legacy: dict[int, int] = {}
        self._blocking: dict[int, list[int]] = {}
        self._events: dict[int, Clock] = {}
        self._joined: dict[int, int] = {}  # streams' versions that the host knows

    def add_stream(self, number: int, device: int, kind: str) -> None:
        """A stream came to be."""
        self._streams[number] = _Stream(device, kind)
        if kind == "l":
            self._legacy[device] = number
        elif kind in "bp":
            self._blocking.setdefault(device, []).append(number)

    def _enter(self, number: int) -> _Stream:
        """Something is put on a stream: it begins after what the host knows and what the default stream orders."""
        stream = self._streams[number]
        if stream.host != self._version:
            join(stream.clock, self.host)
            stream.host = self._version
            stream.version += 1
        if stream.kind == "l":
            for other in self._blocking.get(stream.device, ()):
                self._follow(stream, other)
        elif stream.kind in "bp" and stream.device in self._legacy:
            self._follow(stream, self._legacy[stream.device])
        return stream

    def _follow(self, stream: _Stream, number: int) -> None:
        other = self._streams[number]
        if stream.seen.get(number) != other.version:
            join(stream.clock, other.clock)
            stream.seen[number] = other.version
            stream.version += 1

    def operation(self, number: int) -> tuple[Clock, int]:
        """The clock that the next operation of a stream begins with (a live one: look, do not keep), and its epoch."""
        stream = self._enter(number)
        return stream.clock, stream.clock.get(number, 0) + 1

    def done(self, number: int) -> None:
        """The operation that `operation` was asked for has been looked at: what follows on its stream follows it."""
        stream = self._streams[number]
        stream.clock[number] = stream.clock.get(number, 0) + 1
        stream.version += 1

    def host_operation(self) -> tuple[Clock, int]:
        """The same for something the host does itself; it is done at once."""
        self.host[HOST] += 1
        self._version += 1
        return self.host, self.host[HOST]

    def record(self, event: int, number: int) -> None:
        """An event is recorded on a stream."""
        self._events[event] = dict(self._enter(number).clock)

    def forget(self, event: int) -> None:
        """An event is destroyed."""
        self._events.pop(event, None)

    def wait(self, number: int, event: int) -> None:
        """A stream waits for the latest record of an event."""
        stream = self._enter(number)
        join(stream.clock, self._events.get(event, {}))
        stream.version += 1

    def wait_host_stream(self, number: int) -> None:
        """The host waits for a stream."""
        self._host_joins(number, self._enter(number))

    def _host_joins(self, number: int, stream: _Stream) -> None:
        if self._joined.get(number) != stream.version:
            join(self.host, stream.clock)
            self._joined[number] = stream.version
            self._version += 1

    def wait_host_event(self, event: int) -> None:
        """The host waits for the latest record of an event."""
        join(self.host, self._events.get(event, {}))
        self._version += 1

    def wait_host_device(self, device: int) -> None:
        """The host waits for all streams of a device."""
        for number, stream in self._streams.items():
            if stream.device == device:
                self._host_joins(number, stream)
