"""What FIKIT's client adds to a launch, without a GPU: the driver is the tests' own, which only tells the time.

    python3 scripts/fikit/launch_cost.py [--processes 3] [--rounds 7]

As `launches` of `overhead.py`, which it is; the launches are of 200 kernels in turn.
"""
# ruff: noqa: D103

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from bench import Bench  # noqa: E402
from overhead import launches  # noqa: E402
from places import nowhere, places  # noqa: E402
from turns import Plan  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--pin", action=argparse.BooleanOptionalAction, default=False, help="CPUs for each role")
    parser.add_argument("--json", type=Path, help="also write what was found")
    given = parser.parse_args()
    own = places() if given.pin else nowhere()
    found = launches(Bench(True, own), Plan(given.processes, given.rounds, given.seconds, time.monotonic() + 3600))
    if given.json:
        given.json.write_text(json.dumps({"cpus": own.to_json(), "launches": found}, indent=1))


main()
