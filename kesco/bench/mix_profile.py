"""A profile of a mix's hand-written program, from what each kernel costs alone: ``profile_of(mix, …)`` → `Costs`.

In: a mix, the workloads, and kernels' costs at about 1 GB. Out: what ``kesco profile`` would write of a run with the
mix's arguments, so that fair zones can be compiled where there is no GPU.

1. The text of the program is cut where its tasks begin; the launches of a task have the labels of its workload. 2. How
often each kernel runs is counted in a dry run on small data, which does not change that; launches of one kernel share
it evenly. 3. How long it takes is scaled to the task's size (`mix_model.prices_of`).

What it leaves out: copies and memsets, which `costs.toml` does not have.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kesco.bench import costs as known_costs
from kesco.bench.mix_model import prices_of, record_of
from kesco.bench.mixes import Mix
from kesco.bench.suite import Workload
from kesco.ir.costs import Cost, Costs, Identity, Origin, Times
from kesco.llvm.names import display_name
from kesco.model.gpu import KernelCost
from kesco.options import Options
from kesco.verify.trace import Launched

_TASK = re.compile(r"^#pragma kesco task .*\bname\((\w+)\)", re.MULTILINE)
_LAUNCH = re.compile(r"\b(\w+)<<<")
_SMALL = 64


def profile_of(mix: Mix, workloads: Sequence[Workload], folder: Path, costs: known_costs.Costs) -> Costs:
    """The profile; `folder` is that of the workloads."""
    source = folder / "mp" / f"{mix.program}.cu"
    text = source.read_text("utf-8")
    known = {workload.name: workload for workload in workloads}
    prices = {task.name: prices_of(task, known[task.program], costs) for task in mix.tasks}
    launches = list(_launches(text, prices))
    runs = _runs(mix, source)
    statements = Counter(name for _, name, _ in launches)
    found = []
    for line, name, cost in launches:
        count = max(1, runs[name] // statements[name])
        identity = Identity("kernel", name, (cost.blocks, 1, 1), (cost.threads, 1, 1), 0, f"{source.name}:{line}")
        times = Times.of([round(cost.microseconds * 1000)] * count)
        found.append(Cost(identity, name, times, None, cost.registers, cost.shared, cost.sm, cost.memory))
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    return Costs.of(Origin(method="costs of kernels alone", sources=((source.name, digest),)), found)


def _launches(text: str, prices: Mapping[str, Mapping[str, KernelCost]]) -> Iterator[tuple[int, str, KernelCost]]:
    """Line, kernel and cost of each launch in a task that has one."""
    begins = [*_TASK.finditer(text)]
    for begin, end in zip(begins, [*(b.start() for b in begins[1:]), len(text)], strict=True):
        of = prices[begin[1]]
        places = list(_LAUNCH.finditer(text, begin.end(), end))
        seen: Counter[str] = Counter()
        for place in places:
            seen[place[1]] += 1
            labels = (place[1], f"{place[1]}#{seen[place[1]]}")
            cost = next((of[label] for label in labels if label in of), None)
            if cost is not None:
                yield text.count("\n", 0, place.start()) + 1, place[1], cost


def _runs(mix: Mix, source: Path) -> Counter[str]:
    """How often each kernel runs with the mix's arguments."""
    arguments: list[str] = []
    for task in mix.tasks:
        given = list(task.arguments)
        given[given.index("--n") + 1] = str(_SMALL)
        arguments += [*(["--"] if arguments else []), *given, "--no-check"]
    trace = record_of(source, Options(), arguments)
    names = (display_name(one.name) for one in trace.events if isinstance(one, Launched))
    return Counter(name.partition("(")[0].rpartition("::")[2] for name in names)
