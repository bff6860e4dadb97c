"""The table of strategies by name, and how many streams are worth having.

In: a `Dfg` and a number of streams. Out: a `Schedule`. It is apart from the strategies so that the command
line and the tests find them all in one place and a new one is one module and one line here.

Method: 1. look the name up; 2. call it with the number of streams asked for, or with `default_streams`.

What it refuses to do: guess a strategy from the program.
"""

from __future__ import annotations

from collections.abc import Callable

from kesco.ir.dfg import Dfg
from kesco.ir.schedule import Schedule
from kesco.scheduling.critical_path import critical_path
from kesco.scheduling.distributor import distribute
from kesco.scheduling.serial import serial
from kesco.scheduling.streams import MOST_STREAMS as MOST_STREAMS
from kesco.scheduling.streams import default_streams as default_streams
from kesco.scheduling.zones import zones
from kesco.scheduling.zones_fair import zones_fair

STRATEGIES: dict[str, Callable[[Dfg, int], Schedule]] = {
    "kesco": distribute,
    "critical_path": critical_path,
    "serial": serial,
    "zones": zones,
    "zones-fair": zones_fair,
}
