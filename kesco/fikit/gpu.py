"""A GPU that several processes share, as a discrete-event model: who runs, and what is done when.

In: kernels, each of a task, with their times alone. Out: when they are done. Two ways of sharing, as far as is known of
them (NVIDIA, "Multi-Process Service"; the rest is measured elsewhere and comes in as numbers):

- `Sliced`: the driver's default. One context at a time; while others have work, each runs for a time slice in turn; a
  context without work loses the GPU at once; going to another context takes a while. Kernels of one context run one
  after another.
- `Concurrent`: as under MPS. The first kernel of every task runs; where their shares add up to more than the GPU, all
  slow down by as much.

What it leaves out: priorities of streams, several streams of one task, caches, memory.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass

NEVER = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Machine:
    """What sharing costs, in nanoseconds; `concurrent`: as under MPS instead of by time slices.

    `grant_ns` is the way from a decision to the launch that waits for it, `notice_ns` the way of a word in shared
    memory, such as a report or the end of a credit. `ended_ns` is that of the report that a kernel has ended: who does
    not wait for it asks the GPU every `poll_ns` (0: at once). The defaults are for orientation and of no particular
    GPU: measure them.
    """

    concurrent: bool = False
    slice_ns: int = 2_000_000
    switch_ns: int = 50_000
    grant_ns: int = 2_000
    notice_ns: int = 1_000
    ended_ns: int = 1_000
    poll_ns: int = 0


@dataclass(slots=True)
class Work:
    """A kernel on its way: whose, which of its launches, when launched, its time and share, what is left of it."""

    task: int
    number: int
    launched: int
    time_ns: int
    share: float = 1.0
    left: float = 0.0


class Gpu(ABC):
    """What the two ways have in common: a queue for each task, and how much of each task was done."""

    def __init__(self, machine: Machine, tasks: int) -> None:
        self.machine = machine
        self.now = 0
        self.queues: list[deque[Work]] = [deque() for _ in range(tasks)]
        self.executed = [0.0] * tasks
        """Nanoseconds of kernels' own time that were done, for each task."""

    def add(self, now: int, work: Work) -> None:
        """A launch; `now` must not be behind an event that `next_event` named and `advance` has not come to."""
        self.go_on(now)
        work.left = float(max(work.time_ns, 1))
        self.queues[work.task].append(work)
        self._arrived(work)

    @abstractmethod
    def next_event(self) -> int:
        """When something changes if nothing is launched; `NEVER` where nothing runs."""

    def advance(self, now: int) -> list[Work]:
        """Go on to a time that is not behind `next_event`; the kernels that are done then."""
        self.go_on(now)
        done = [queue.popleft() for queue in self.queues if queue and queue[0].left < 0.5]
        self._changed()
        return done

    @abstractmethod
    def go_on(self, now: int) -> None:
        """Let time pass in which nothing changes."""

    @abstractmethod
    def _arrived(self, work: Work) -> None:
        """A kernel stands in its queue now."""

    @abstractmethod
    def _changed(self) -> None:
        """Kernels were done, or a slice is over."""


class Sliced(Gpu):
    """One context at a time."""

    def __init__(self, machine: Machine, tasks: int) -> None:
        super().__init__(machine, tasks)
        self.running = -1
        self.loaded = -1
        """The context that ran last: it goes on without a switch."""
        self.ready = self.slice_end = 0

    def next_event(self) -> int:
        """The end of a kernel, or of a slice while others wait."""
        if self.running < 0:
            return NEVER
        end = max(self.now, self.ready) + math.ceil(self.queues[self.running][0].left)
        others = any(queue for task, queue in enumerate(self.queues) if task != self.running)
        return max(min(end, self.slice_end), self.now) if others else end

    def go_on(self, now: int) -> None:
        """The running context does its work, once it is there."""
        if self.running >= 0 and now > max(self.now, self.ready):
            head = self.queues[self.running][0]
            passed = min(now - max(self.now, self.ready), head.left)
            head.left -= passed
            self.executed[self.running] += passed
        self.now = max(self.now, now)

    def _arrived(self, work: Work) -> None:
        if self.running < 0:
            self._switch(work.task)

    def _changed(self) -> None:
        over = self.now >= self.slice_end
        if self.running >= 0 and self.queues[self.running] and not over:
            return
        many = len(self.queues)
        following = ((self.running + 1 + n) % many for n in range(many))  # the running one itself comes last
        chosen = next((task for task in following if self.queues[task]), -1)
        if chosen < 0:
            self.running = -1
        elif chosen != self.running or over:
            self._switch(chosen)

    def _switch(self, task: int) -> None:
        self.ready = self.now + (0 if self.loaded in (-1, task) else self.machine.switch_ns)
        self.slice_end = self.ready + self.machine.slice_ns
        self.running = self.loaded = task


class Concurrent(Gpu):
    """The first kernel of every task runs."""

    def next_event(self) -> int:
        """The next end of a kernel."""
        heads = [queue[0].left for queue in self.queues if queue]
        return self.now + math.ceil(min(heads) * self._slowdown()) if heads else NEVER

    def _slowdown(self) -> float:
        return max(1.0, sum(queue[0].share for queue in self.queues if queue))

    def go_on(self, now: int) -> None:
        """All that run do their work."""
        if now <= self.now:
            return
        passed = (now - self.now) / self._slowdown()
        for task, queue in enumerate(self.queues):
            if queue:
                done = min(passed, queue[0].left)
                queue[0].left -= done
                self.executed[task] += done
        self.now = now

    def _arrived(self, work: Work) -> None:
        """Nothing to decide."""

    def _changed(self) -> None:
        """Nothing to decide."""


def gpu(machine: Machine, tasks: int) -> Gpu:
    """A GPU of this kind for so many tasks."""
    return Concurrent(machine, tasks) if machine.concurrent else Sliced(machine, tasks)
