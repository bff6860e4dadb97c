"""What a program does with the device as it runs: steps of the host, the paths between them, what each step touches.

Not a text but an execution: a function that is called twice is two times as many steps, and a loop whose trips are
known is as many steps as it has trips. Of any other loop the first trip has steps of its own, and all others share
theirs. Streams and events are values: by where they were made, and by how many there were before them.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from kesco.ir.access import Access, Buffer
from kesco.ir.touched import Shape
from kesco.source import Span


class StepKind(enum.Enum):
    """What a step is. Up to `ALLOCATION` they give a stream work."""

    LAUNCH = "launch"
    COPY = "copy"
    MEMSET = "memset"
    LIBRARY = "library"
    OPAQUE = "opaque"  # a call of which is not known what it does
    ALLOCATION = "allocation"  # of memory that belongs to a stream
    FREE = "free"
    RECORD = "record"
    WAIT = "wait"  # of a stream, for an event
    SYNC = "sync"  # of the host: with a stream, an event, or all
    HOST = "host"  # it reads or writes what the device reaches
    QUESTION = "question"  # by which a loop is left; its name is in words
    ANSWER = "answer"  # to a question that is asked elsewhere, too
    LOOP = "loop"  # where a trip of a loop begins that is not the first
    ENTRY = "entry"
    EXIT = "exit"


WORK = frozenset(
    {StepKind.LAUNCH, StepKind.COPY, StepKind.MEMSET, StepKind.LIBRARY, StepKind.OPAQUE, StepKind.ALLOCATION}
)


class Waits(enum.Enum):
    """Until when a step keeps the host."""

    NO = "no"
    STREAM = "stream"
    DEVICE = "device"
    MAYBE = "maybe"  # until its stream is done, or not: nobody may count on it


@dataclass(frozen=True, slots=True)
class Handle:
    """A stream or an event. `certain`: it is one; otherwise it stands for several.

    `key` is ``legacy`` for the legacy default stream, ``thread`` for that of the thread. `blocking`: a stream that the
    legacy default stream waits for, and that waits for it; None where its flags are not known.
    """

    key: str
    name: str
    certain: bool = True
    blocking: bool | None = True


LEGACY = Handle("legacy", "the default stream")
THREAD = Handle("thread", "the thread's default stream")


@dataclass(frozen=True, slots=True)
class Argument:
    """What a call or launch is given: memory, with where in it, or a number in words. Neither: it is not known.

    Words are a number, or how the program comes by it; the same words are the same number in both of a pair.
    """

    buffer: Buffer | None = None
    offset: int | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch of which all is known that decides where it touches memory; a buffer begins at its address."""

    kernel: str
    arguments: tuple[bytes, ...]
    grid: Shape
    block: Shape


@dataclass(frozen=True, slots=True)
class Step:
    """One step, as often as it happens.

    `streams` and `events`: one of these; empty: none, or with `astray`, any. `waits`: until when it keeps the host.
    `certain` are the keys of buffers which it touches for sure, if it touches anything. `finished` are those that it
    has done with when it returns. `loops` are those around it, outermost first, whose trips share this step.
    `conditions` are the questions of the program that decide whether it happens, with their answers. `answer`: of a
    question, until a trip of any loop begins; `carries`, of such a beginning: questions of the trip before with those
    of this one that have the same answers.
    """

    number: int
    kind: StepKind
    name: str
    span: Span
    after: tuple[int, ...]
    streams: tuple[Handle, ...] = ()
    events: tuple[Handle, ...] = ()
    astray: bool = False
    waits: Waits = Waits.NO
    accesses: tuple[Access, ...] = ()
    certain: frozenset[str] = frozenset()
    finished: frozenset[str] = frozenset()
    arguments: tuple[Argument, ...] = ()
    launched: Launched | None = None
    loops: tuple[int, ...] = ()
    conditions: tuple[str, ...] = ()
    note: str = ""
    answer: tuple[str, int] | None = None
    carries: tuple[tuple[str, str], ...] = ()

    @property
    def is_work(self) -> bool:
        """Whether it gives a stream work."""
        return self.kind in WORK


@dataclass(frozen=True, slots=True)
class Execution:
    """All steps of a program; control begins at the first one. `refused`: why it could not be followed.

    `leaving` has, of each loop, the questions by which it is left.
    """

    path: str
    steps: tuple[Step, ...] = ()
    refused: str = ""
    leaving: tuple[tuple[int, tuple[str, ...]], ...] = ()
    addresses: tuple[tuple[str, int], ...] = ()  # of buffers, for launches whose touches are asked for
