"""Several tasks on one GPU under each scheme: MP-1 and MP-2 of the KeSCo paper, as in its figure 13.

python scripts/mixes.py --build built                          # where nvcc is
python scripts/mixes.py --built built --json mixes.json        # where the GPU is: neither a compiler nor a package
python scripts/mixes.py --from mixes.json --plot mixes.svg     # matplotlib draws
python scripts/mixes.py --model --against mixes.json           # no GPU: a model of one, and how far it is off
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kesco.bench import mix_results, mixes
from kesco.bench.build import read
from kesco.bench.mix_results import Shared
from kesco.bench.sharing import share
from kesco.bench.suite import choose
from kesco.errors import KescoError


def main() -> int:
    """Do what the arguments say; the exit status is 3 where a scheme failed."""
    arguments = _arguments()
    chosen = mixes.load(arguments.workloads, arguments.mixes)
    if arguments.build is not None:
        from kesco.bench.mix_build import build_mixes
        from kesco.toolchain.discover import discover

        build_mixes(chosen, arguments.workloads, arguments.build, discover(), lambda name: write(name, sys.stderr))
        return 0
    if arguments.source is not None:
        shared = mix_results.read(arguments.source)
    else:
        shared = _predicted(arguments, chosen) if arguments.model else _measured(arguments, chosen)
    for line in mix_results.lines(shared, chosen):
        write(line)
    if arguments.against is not None:
        for line in mix_results.compared(shared, mix_results.read(arguments.against), chosen):
            write(line)
    if arguments.plot is not None:
        from kesco.bench.mix_plots import plot

        arguments.plot.write_text(plot(shared, chosen), "utf-8")
    return 3 if any(one.problem for one in shared.outcomes) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mixes", nargs="*", metavar="MIX", help="default: all")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--build", type=Path, metavar="FOLDER", help="make the programs there, and end")
    where.add_argument("--built", type=Path, metavar="FOLDER", help="run the programs made there")
    where.add_argument("--from", dest="source", type=Path, metavar="JSON", help="show these results")
    where.add_argument("--model", action="store_true", help="predict, from what kernels cost alone")
    parser.add_argument("--against", type=Path, metavar="JSON", help="say how far these results are from the others")
    parser.add_argument("--schemes", help=f"with commas; default: {','.join(mixes.MEASURED)}")
    parser.add_argument("--rounds", type=int, default=10, help="that count, of each scheme (default: 10)")
    parser.add_argument("--repeats", type=int, default=5, help="of them for each start (default: 5)")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one run (default: 120)")
    parser.add_argument("--time-limit", type=float, default=float("inf"), help="seconds; begin nothing new after that")
    parser.add_argument("--json", type=Path, help="write the results there, after every turn of the schemes")
    parser.add_argument("--plot", type=Path, metavar="SVG", help="draw them")
    parser.add_argument("--workloads", type=Path, default=Path("workloads"))
    return parser.parse_args()


def _measured(arguments: argparse.Namespace, chosen: list[mixes.Mix]) -> Shared:
    build = read(arguments.built)
    wanted = arguments.schemes.split(",") if arguments.schemes else mixes.MEASURED
    names = choose("scheme", ("alone", *wanted), mixes.SCHEMES)  # all others are compared with the first
    environment = {
        "gpu": gpu(),
        "cuda": build.made["cuda"],
        "flags": build.made["flags"],
        "commit": build.made["commit"],
        "date": date.today().isoformat(),
        "method": f"schemes in turn, {arguments.rounds} rounds, {arguments.repeats} for each start of the programs "
        "behind one that warms up",
    }
    shared = Shared((), environment, build.plans())
    until = time.monotonic() + arguments.time_limit
    schemes = [mixes.SCHEMES[name] for name in names]
    began = time.monotonic()

    def progress(said: str) -> None:
        write(f"{time.monotonic() - began:6.1f} s  {said}", sys.stderr)

    rounds, repeats = arguments.rounds, arguments.repeats
    for outcomes in share(build, chosen, schemes, rounds, arguments.timeout, until, progress, repeats):
        shared = Shared(outcomes, environment, build.plans())
        if arguments.json is not None:
            arguments.json.write_text(mix_results.to_json(shared), "utf-8")
    return shared


def _predicted(arguments: argparse.Namespace, chosen: list[mixes.Mix]) -> Shared:
    from kesco.bench import costs, mix_model, suite

    known = costs.read(arguments.workloads / "costs.toml")
    workloads = suite.load(arguments.workloads)
    shared = mix_model.predicted(chosen, workloads, arguments.workloads, known, lambda said: write(said, sys.stderr))
    if arguments.json is not None:
        arguments.json.write_text(mix_results.to_json(shared), "utf-8")
    return shared


def gpu() -> str:
    """The GPU and its driver."""
    ask = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(ask, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def write(line: str, to: object = None) -> None:
    """One line."""
    stream = to if to is sys.stderr else sys.stdout
    stream.write(line + "\n")
    stream.flush()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KescoError as error:
        for one in error.diagnostics:
            write(f"error[{one.code}]: {one.message}\n  help: {one.help}", sys.stderr)
        sys.exit(error.exit_code)
