"""What each kernel costs when it runs alone: read from a file, or the same for all.

The file is TOML, a table for each workload and setting (``["vec/1gb/32"]``), in it for each kernel launch, by its label
in the graph (``"square#1"``), the fields of `KernelCost`. `scripts/kernel_costs.py` writes it from what Nsight Compute
measured. Its table ``machine`` overrides fields of `Machine`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError
from kesco.model.gpu import KernelCost, Machine

NO_COSTS = "K526"
UNKNOWN = KernelCost(50.0, 64, 256, sm=0.1, memory=0.1)
"""A kernel nobody measured: 50 microseconds in which it uses a tenth of an H200."""
MEMSET = KernelCost(2.0, 1, 256)


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs by setting and label, and the machine they were measured on."""

    machine: Machine = field(default_factory=Machine)
    settings: Mapping[str, Mapping[str, KernelCost]] = field(default_factory=dict)

    def of(self, setting: str, label: str) -> KernelCost:
        """The cost of a launch; launches of one kernel stand for each other where only some were measured."""
        known = self.settings.get(setting, {})
        if label in known:
            return known[label]
        name = label.partition("#")[0]
        return next((cost for other, cost in known.items() if other.partition("#")[0] == name), UNKNOWN)


def read(path: Path) -> Costs:
    """Costs from a file; raises `UsageError` (K526)."""
    try:
        found = tomllib.loads(path.read_text("utf-8"))
        machine = replace(Machine(), **found.pop("machine", {}))
        settings = {
            setting: {label: KernelCost(**facts) for label, facts in kernels.items()}
            for setting, kernels in found.items()
        }
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            Diagnostic(
                NO_COSTS,
                Severity.ERROR,
                f"{path} holds no costs of kernels: {error}",
                help="see kesco/bench/costs.py for its form",
            )
        ) from None
    return Costs(machine, settings)
