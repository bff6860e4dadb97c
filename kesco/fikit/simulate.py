"""Replay a trace of several tasks under a policy, without a GPU: the policy's own code with a clock of numbers.

In: a `Trace`, a kind of policy with its settings, a `Machine`, what is known of the kernels. Out: a `Replay`: when each
task was done, how much of the urgent task's gaps was filled, how often that was in its way.

1. Each task's host goes through its steps: it computes for the step's gap, then launches. The holder's gate is open;
   any other one stops, and what it launches begins when its ticket is granted; or it goes on by its credit, by the rule
   that clients follow. 2. The GPU (`kesco.fikit.gpu`) says when kernels are done. 3. Each of these reaches the policy a
   little later (`notice_ns`), and its answer the task (`grant_ns`; credits like reports). 4. Time jumps from event to
   event.

What it does not know: everything that `kesco.fikit.gpu` leaves out, the host's cores (each task has one), and that a
program may do something else when it is late.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kesco.fikit.gpu import NEVER, Gpu, Machine, Work, gpu
from kesco.fikit.policy import Credit, Kind, Policy, Settings
from kesco.fikit.trace import Step, Trace, TracedTask
from kesco.ir.costs import Times
from kesco.ir.kfikit import Kernel

QUEUE = 1024
"""Launches that a task may have on the GPU before the driver lets its host wait."""
TaskCosts = Mapping[int, Kernel]


@dataclass(frozen=True, slots=True)
class TaskReplay:
    """What became of a task: when it was done, its kernels' time on the GPU; how long its launches waited, in all."""

    name: str
    priority: int
    arrived_ns: int
    completed_ns: int
    kernel_ns: int
    beside_ns: int
    """Kernel time that was done while the most urgent task was there."""
    counters: Mapping[str, int]

    @property
    def taken_ns(self) -> int:
        """From its arrival to its end."""
        return self.completed_ns - self.arrived_ns


@dataclass(frozen=True, slots=True)
class Replay:
    """One trace under one policy. The first task is the most urgent one; what follows `tasks` is about its gaps.

    `fillable_ns` are its gaps of at least the threshold, `filled_ns` other tasks' kernel time within them. An *overrun*
    is a gap at whose end other tasks had work on the GPU. `late_ns` is how much longer its first kernels behind gaps
    took from launch to end than alone, switches of contexts included.
    """

    tasks: tuple[TaskReplay, ...]
    gaps: int
    gap_ns: int
    fillable_ns: int
    filled_ns: int
    overruns: int
    late_ns: int
    decisions: int

    @property
    def fill(self) -> float:
        """The part of fillable time that was filled."""
        return self.filled_ns / self.fillable_ns if self.fillable_ns else 0.0

    @property
    def beside(self) -> float:
        """The part of the most urgent task's time in which the GPU did others' work."""
        top = self.tasks[0]
        return sum(one.beside_ns for one in self.tasks[1:]) / top.taken_ns if top.taken_ns else 0.0


@dataclass(slots=True)
class _Host:
    """A task's host side."""

    task: TracedTask
    step: int = 0
    launched: int = 0
    done: int = 0
    next_at: int = NEVER  # when it comes to its next launch, where that is known
    held: bool = False
    full: bool = False
    completed: int = -1
    credit: Credit | None = None
    known: int = 0  # launches that its client knows to have ended
    ahead: list[int] = field(default_factory=list)  # what those in flight are taken for, 0: unknown; in order
    samples: list[tuple[int, int, int]] = field(default_factory=list)  # kernel, when launched, when done

    @property
    def over(self) -> bool:
        return self.step == len(self.task.steps)


@dataclass(slots=True)
class _Gaps:
    """The gaps of the most urgent task."""

    since: int = -1
    before: float = 0.0  # what others had done then
    many: int = 0
    total: int = 0
    fillable: int = 0
    filled: float = 0.0
    overruns: int = 0
    late: int = 0
    watched: int = -1  # its launch behind the last gap


class _Replayer:
    """One replay at work."""

    def __init__(self, trace: Trace, policy: Policy, settings: Settings, machine: Machine) -> None:
        order = sorted(range(len(trace.tasks)), key=lambda n: (-trace.tasks[n].priority, trace.tasks[n].arrives_ns, n))
        self.kernels = trace.kernels
        self.hosts = [_Host(trace.tasks[n]) for n in order]
        self.kind, self.threshold = Kind(settings.kind), int(settings.threshold_ns)
        self.policy, self.machine = policy, machine
        self.gpu: Gpu = gpu(machine, len(order))
        self.gaps = _Gaps()
        self.now = self.tickets = self.decisions = self.sequence = 0
        self.beside = [0.0] * len(order)
        self.events: list[tuple[int, int, str, int, int]] = []  # when, in order, what, whose, which
        self.waiting: dict[int, int] = {}  # ticket to step
        self.said: dict[int, tuple[int, int]] = {}  # by number of what was said: a step, and the credit it was made on
        self.published: dict[int, tuple[int, int]] = {}  # by task: the number of its credit, and until when
        self.credits: dict[int, Credit] = {}  # on their way, by number
        for number in sorted(range(len(order)), key=lambda n: order[n]):  # who came first is as in the trace
            self._later(self.hosts[number].task.arrives_ns, "arrives", number)

    def _later(self, at: int, what: str, number: int, which: int = 0) -> None:
        self.sequence += 1
        heapq.heappush(self.events, (at, self.sequence, what, number, which))

    def run(self, costs: Mapping[int, TaskCosts]) -> None:
        """To the end; `costs` by the tasks' places in `hosts`."""
        self.costs = costs
        wake = NEVER
        while True:
            event = self.events[0][0] if self.events else NEVER
            self.now = min(event, self.gpu.next_event(), wake)
            if self.now == NEVER:
                return
            for work in self.gpu.advance(self.now):
                self._done(work)
            asked = wake <= self.now
            while self.events and self.events[0][0] <= self.now:
                _, _, what, number, which = heapq.heappop(self.events)
                asked |= self._happens(what, number, which)
            if asked:
                self.decisions += 1
                grants, wake = self.policy.decide(self.now)
                for one in grants:
                    self._later(self.now + self.machine.grant_ns, "granted", one.task, one.ticket)
                self._publish()

    def _happens(self, what: str, number: int, which: int) -> bool:
        """One event; whether the policy has to be asked."""
        host = self.hosts[number]
        if what == "launch":
            self._launches(number)
            return False
        if what == "granted":
            at = self.waiting.pop(which)
            host.ahead.append(self._taken_for(number, host.task.steps[at]))
            self._begins(number, at)
            self._later(self.now + self.machine.notice_ns, "begins", number, which)
            return False
        if what == "credit":
            host.credit = self.credits.pop(which, None)
            return False
        if what == "leaves":
            host.completed = self.now
            if number == 0:
                self._top_left()
            self._later(self.now + self.machine.notice_ns, "left", number)
            return False
        if what == "arrives":
            self.policy.arrives(self.now, number, host.task.priority)
            for identity, kernel in self.costs.get(number, {}).items():
                self.policy.cost(number, identity, kernel)
            self._comes_later(number, self.now + host.task.steps[0].gap_ns)
            self._tell_return(number)
        elif what == "passed":
            self.policy.passed(self.now, number, which)
        elif what == "begins":
            self.policy.begins(self.now, number, which)
        elif what == "waits":
            step = host.task.steps[self.waiting[which]]
            self.policy.waits(self.now, number, self.kernels[step.kernel].identity, which)
            if self.kind is Kind.CLAIRVOYANT:
                self.policy.tell_time(number, which, step.time_ns)
        elif what == "credited":
            at, credit = self.said.pop(which)
            self.policy.credited(self.now, number, self.kernels[host.task.steps[at].kernel].identity, credit)
        elif what == "done":
            del host.ahead[: max(0, which - host.known)]
            host.known = max(host.known, which)
            self.policy.done(self.now, number, which)
            self._tell_return(number)
        elif what == "left":
            self.policy.leaves(self.now, number)
        return True

    def _tell_return(self, number: int) -> None:
        host = self.hosts[number]
        if self.kind is Kind.CLAIRVOYANT and host.done == host.launched and not host.held:
            self.policy.tell_return(number, NEVER if host.over else host.next_at)

    def _comes_later(self, number: int, at: int) -> None:
        self.hosts[number].next_at = at
        self._later(at, "launch", number)

    def _launches(self, number: int) -> None:
        """The host stands at a launch."""
        host = self.hosts[number]
        host.full = host.launched - host.done >= QUEUE
        if host.full:
            return
        if number == 0:
            self._top_returns()
        if self.kind is Kind.SHARING or self.policy.holder == number:
            identity = self.kernels[host.task.steps[host.step].kernel].identity
            self._later(self.now + self.machine.notice_ns, "passed", number, identity)
            self._begins(number, host.step)
            return
        self.tickets += 1
        if credit := self._credit_for(host, number):
            self.said[self.tickets] = host.step, credit
            self._later(self.now + self.machine.notice_ns, "credited", number, self.tickets)
            self._begins(number, host.step)
            return
        host.held = True
        self.waiting[self.tickets] = host.step
        self._later(self.now + self.machine.notice_ns, "waits", number, self.tickets)

    def _taken_for(self, number: int, step: Step) -> int:
        if self.kind is Kind.CLAIRVOYANT:
            return max(step.time_ns, 1)
        return self.policy.predicts(number, self.kernels[step.kernel].identity)

    def _credit_for(self, host: _Host, number: int) -> int:
        """The number of the credit on which it may launch now, or 0; as `take_credit` of the client."""
        if host.credit is None or 0 in host.ahead or len(host.ahead) < host.launched - host.known:
            return 0
        predicted = self._taken_for(number, host.task.steps[host.step])
        if not self.policy.allows(host.credit, self.now, sum(host.ahead), len(host.ahead), predicted):
            return 0
        host.ahead.append(predicted)
        return int(host.credit.number)

    def _publish(self) -> None:
        """What the last decision says of credits, where that is news."""
        for number in range(len(self.hosts)):
            found = self.policy.credit(number)
            news = (int(found.number), int(found.until)) if found else (0, 0)
            if news == self.published.get(number, (0, 0)):
                continue
            self.published[number] = news
            self.sequence += 1
            if found:
                self.credits[self.sequence] = found
            self._later(self.now + self.machine.notice_ns, "credit", number, self.sequence)

    def _begins(self, number: int, at: int) -> None:
        """A launch reaches the GPU, and the host goes on or waits."""
        host = self.hosts[number]
        step = host.task.steps[at]
        share = self.kernels[step.kernel].share
        self.gpu.add(self.now, Work(number, host.launched, self.now, step.time_ns, share))
        host.held = False
        host.launched += 1
        host.step += 1
        if not step.waits and not host.over:
            self._comes_later(number, self.now + host.task.steps[host.step].gap_ns)

    def _done(self, work: Work) -> None:
        host = self.hosts[work.task]
        host.done += 1
        step = host.task.steps[work.number]
        host.samples.append((step.kernel, work.launched, self.now))
        if work.task == 0 and work.number == self.gaps.watched:
            self.gaps.late += max(0, self.now - work.launched - step.time_ns)
            self.gaps.watched = -1
        if host.done == host.launched:
            if host.over:
                self._later(self.now + host.task.ends_ns, "leaves", work.task)
            else:
                if step.waits:
                    self._comes_later(work.task, self.now + host.task.steps[host.step].gap_ns)
                if work.task == 0 and not host.held:
                    self.gaps.since, self.gaps.before = self.now, sum(self.gpu.executed[1:])
        if host.full:
            self._later(self.now, "launch", work.task)
        seen = self.now
        if self.machine.poll_ns and not step.waits and not host.over:
            seen += -self.now % self.machine.poll_ns
        self._later(seen + self.machine.ended_ns, "done", work.task, host.done)

    def _top_returns(self) -> None:
        """The most urgent task ends its gap."""
        gaps = self.gaps
        if gaps.since < 0:
            return
        length, gaps.since = self.now - gaps.since, -1
        gaps.many += 1
        gaps.total += length
        self.gpu.go_on(self.now)
        gaps.watched = self.hosts[0].launched
        gaps.overruns += any(self.gpu.queues[1:])
        if length >= self.threshold:
            gaps.fillable += length
            gaps.filled += sum(self.gpu.executed[1:]) - gaps.before

    def _top_left(self) -> None:
        self.gpu.go_on(self.now)
        self.beside = list(self.gpu.executed)


def replay(trace: Trace, settings: Settings, machine: Machine, costs: Mapping[str, TaskCosts] | None = None) -> Replay:
    """A trace under a policy; `costs` are the profiles by the tasks' names, none where a task has none."""
    with Policy(settings) as policy:
        work = _replayer(trace, policy, settings, machine, costs or {})
        tasks = []
        for number, host in enumerate(work.hosts):
            state = policy.task(number)
            tasks.append(
                TaskReplay(
                    host.task.name, host.task.priority, host.task.arrives_ns, host.completed,
                    round(work.gpu.executed[number]), round(work.beside[number]), state.counters() if state else {},
                )
            )  # fmt: skip
    gaps = work.gaps
    return Replay(
        tuple(tasks), gaps.many, gaps.total, gaps.fillable, round(gaps.filled), gaps.overruns, gaps.late, work.decisions
    )


def _replayer(
    trace: Trace, policy: Policy, settings: Settings, machine: Machine, costs: Mapping[str, TaskCosts]
) -> _Replayer:
    work = _Replayer(trace, policy, settings, machine)
    work.run({number: costs.get(host.task.name, {}) for number, host in enumerate(work.hosts)})
    return work


@dataclass(frozen=True, slots=True)
class Alone:
    """A task with the GPU to itself: how long it takes, and what a profiler would have measured."""

    taken_ns: int
    costs: Mapping[int, Kernel]


def alone(trace: Trace, number: int, settings: Settings, machine: Machine) -> Alone:
    """One task of a trace, alone: the measurement phase. Its first gap, before any kernel, has identity 0."""
    task = trace.tasks[number]
    only = Trace(trace.kernels, (task,), trace.gpu)
    with Policy(settings) as policy:
        work = _replayer(only, policy, settings, machine, {})
    times: dict[int, list[int]] = {}
    gaps: dict[int, list[int]] = {}
    host = work.hosts[0]
    before, last = 0, task.arrives_ns
    for position, (kernel, launched, done) in enumerate(host.samples):
        gaps.setdefault(before, []).append(max(0, launched - last))
        before, last = trace.kernels[kernel].identity, done
        times.setdefault(before, []).append(max(1, task.steps[position].time_ns))
    known = {one.identity: one for one in trace.kernels}
    found = {}
    for identity in times.keys() | gaps.keys():
        one = known.get(identity)
        time, gap = (Times.of(part[identity]) if identity in part else None for part in (times, gaps))
        empty = Kernel(one.name, one.grid, one.block, one.shared) if one else Kernel()
        found[identity] = replace(empty, time=time, gap=gap)
    return Alone(host.completed - task.arrives_ns, found)
