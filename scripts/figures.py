"""Published figures that are of other plans than today's: which they are, and how to measure them again.

python scripts/figures.py                             # says which are stale; docs/bench against workloads/baseline.json
python scripts/figures.py --build built               # where nvcc is: the programs of the stale files
python scripts/figures.py --built built               # where the GPU is: measures them, writes figures and digests
python scripts/figures.py --build built h200-mixes    # only these files; --all for those that are not stale, too

What is measured: the settings of a file that have a stale program, in all variants that the file has of them, or with
--all every setting. On another GPU than the file's only --all will do, so that one file is of one card.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mixes import gpu, write

from kesco import __version__
from kesco.bench import build as building
from kesco.bench import measure, mix_results, mixes, paired, regress, results, suite
from kesco.bench.figures import program_of, stale
from kesco.bench.measure import Plan, Setting
from kesco.bench.paired import Turns
from kesco.bench.pairs import ROUNDS
from kesco.bench.sharing import Outcome, share
from kesco.errors import KescoError

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Table:
    """A file of results, and the names of its programs that are to be measured again."""

    path: Path
    programs: frozenset[str]
    whole: bool

    @property
    def of_mixes(self) -> bool:
        """Whether it is of tasks that share a GPU."""
        return '"mixes"' in self.path.read_text("utf-8")


def main() -> int:
    """Do what the arguments say; the exit status is 1 where figures are stale, 3 where a program failed."""
    arguments = _arguments()
    today = {name: state.digest for name, state in regress.read(ROOT / "workloads/baseline.json").items()}
    tables = []
    for path in sorted((ROOT / "docs/bench").glob("*.json")):
        found = stale(path, today, mixes.load(ROOT / "workloads"))
        if arguments.files and path.stem not in arguments.files:
            continue
        for name, why in found.items():
            write(f"{path.stem}: {name}: {why}")
        if found or (arguments.all and '"version"' in path.read_text("utf-8")):
            tables.append(Table(path, frozenset(found), arguments.all))
    if arguments.build is not None:
        for table in tables:
            _build(table, arguments.build / table.path.stem)
        return 0
    if arguments.built is None:
        return 1 if tables else 0
    until = time.monotonic() + arguments.time_limit
    return max((_measured(table, arguments, until) for table in tables), default=0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", help="names below docs/bench, without .json; default: all")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--build", type=Path, metavar="FOLDER", help="make the programs there, and end")
    where.add_argument("--built", type=Path, metavar="FOLDER", help="run the programs made there")
    parser.add_argument("--all", action="store_true", help="everything in the files, stale or not")
    parser.add_argument("--repeat", type=int, default=10, help="repetitions in all, or in each round (default: 10)")
    parser.add_argument("--rounds", type=int, default=2, help="processes of each variant (default: 2)")
    parser.add_argument("--short", type=int, default=400, help="repetitions of a process below a millisecond")
    parser.add_argument("--time-limit", type=float, default=float("inf"), help="seconds; begin nothing new after that")
    return parser.parse_args()


def _build(table: Table, folder: Path) -> None:
    from kesco.bench.mix_build import build_mixes
    from kesco.toolchain.discover import discover

    def said(name: str) -> None:
        write(f"{table.path.stem}: {name}", sys.stderr)

    if table.of_mixes:
        build_mixes(_mixes(table), ROOT / "workloads", folder, discover(), said)
        return
    kept = results.read(table.path)
    wanted = _settings(table, kept)
    names = list(dict.fromkeys(one.workload for one in wanted))
    programs = dict.fromkeys(program_of(row.variant) for row in kept.rows if row.setting in wanted)
    building.build(
        suite.load(ROOT / "workloads", names), dict.fromkeys(one.style for one in wanted), folder, discover(), said, 2,
        ("serial", *programs), ROUNDS in kept.environment,
    )  # fmt: skip


def _settings(table: Table, kept: results.Results) -> list[Setting]:
    """The settings to measure."""
    stale_ones = {r.setting for r in kept.rows if _name(r.setting, r.variant) in table.programs}
    return [one for one in kept.settings() if table.whole or one in stale_ones]


def _name(setting: Setting, variant: str) -> str:
    return f"{setting.workload}/{setting.style}/{program_of(variant)}"


def _mixes(table: Table) -> list[mixes.Mix]:
    """The mixes to measure: all schemes of a mix are compared with each other."""
    chosen = mixes.load(ROOT / "workloads")
    tasks = {name.partition("/")[0] for name in table.programs}
    return [m for m in chosen if table.whole or m.name in tasks or tasks & {task.program for task in m.tasks}]


def _measured(table: Table, arguments: argparse.Namespace, until: float) -> int:
    build = building.read(arguments.built / table.path.stem)
    made = {name: build.made[name] for name in ("cuda", "flags", "commit")}
    environment = {"gpu": gpu(), **made, "kesco": __version__, "date": date.today().isoformat()}
    kept = (mix_results.read if table.of_mixes else results.read)(table.path)
    if kept.environment["gpu"] != environment["gpu"] and not table.whole:
        write(f"{table.path.stem}: is of another card, {kept.environment['gpu']}: measure it with --all", sys.stderr)
        return 3
    if not table.whole:  # what was not measured again stays as it was, and says so
        environment = kept.environment | environment
        environment["commit"] = f"{kept.environment['commit']}; measured again: {environment['commit']}"
    if isinstance(kept, mix_results.Shared):
        return _shared(table, kept, build, environment, arguments, until)
    return _rows(table, kept, build, environment, arguments, until)


def _shared(
    table: Table,
    kept: mix_results.Shared,
    build: building.Build,
    environment: dict[str, str],
    arguments: argparse.Namespace,
    until: float,
) -> int:
    chosen = _mixes(table)
    repeats = max(1, arguments.repeat // 2)
    often = (
        f"schemes in turn, {arguments.repeat} rounds, {repeats} for each start of the programs behind one that warms up"
    )
    schemes = [mixes.SCHEMES[name] for name in mixes.MEASURED]
    names = {mix.name for mix in chosen}
    old = tuple(one for one in kept.outcomes if one.mix not in names)
    outcomes: tuple[Outcome, ...] = ()
    for outcomes in share(build, chosen, schemes, arguments.repeat, 120.0, until, _say, repeats):  # noqa: B007
        pass
    if not all(any((o.mix, o.scheme) == (m, s.name) for o in outcomes) for m in names for s in schemes):
        write(f"{table.path.stem}: not done in time; nothing is written", sys.stderr)
        return 3
    plans = {name: plan for name, plan in kept.plans.items() if not table.whole} | build.plans()
    order = {mix.name: number for number, mix in enumerate(mixes.load(ROOT / "workloads"))}
    both = tuple(sorted((*old, *outcomes), key=lambda one: order[one.mix]))
    new = mix_results.Shared(both, {**environment, "method": often}, plans)
    table.path.write_text(mix_results.to_json(new), "utf-8")
    return 3 if any(one.problem for one in outcomes) else 0


def _rows(
    table: Table,
    kept: results.Results,
    build: building.Build,
    environment: dict[str, str],
    arguments: argparse.Namespace,
    until: float,
) -> int:
    in_turns = ROUNDS in kept.environment
    wanted = _settings(table, kept)
    fresh: dict[tuple[Setting, str], measure.Row] = {}
    for variants, settings in _by_variants(kept, wanted):
        streams = tuple(int(v.removeprefix("kesco-")) for v in variants if v not in suite.VARIANTS)
        named = tuple(v for v in variants if v in suite.VARIANTS)
        if in_turns:
            turns = Turns(int(kept.environment[ROUNDS]), 8, 1, variants=named, streams=streams)
            found = paired.measure(build, settings, turns, _said, until)
        else:
            plan = replace(Plan(arguments.repeat, arguments.rounds, variants=named, streams=streams),
                           short_repeat=arguments.short)  # fmt: skip
            found = measure.measure(build, settings, plan, _said, until)
        fresh |= {(row.setting, row.variant): row for row in found}
    missing = [s for s in wanted if not any(at == s for at, _ in fresh)]
    if missing:
        write(f"{table.path.stem}: not done in time, {len(missing)} settings left; nothing is written", sys.stderr)
        return 3
    measured = {build_name(one) for one in wanted}
    plans = {n: p for n, p in kept.plans.items() if n.rpartition("/")[0] not in measured and not table.whole}
    plans |= {n: p for n, p in build.plans().items() if n.rpartition("/")[0] in measured}
    if in_turns:
        environment |= {ROUNDS: kept.environment[ROUNDS]}
    often = f"{arguments.repeat} in {arguments.rounds} processes; below a millisecond {arguments.short} in each"
    environment.setdefault("method", kept.environment["method"] if in_turns else f"medians of {often}")
    rows = tuple(fresh.get((row.setting, row.variant), row) for row in kept.rows)
    table.path.write_text(results.to_json(results.Results(rows, environment, plans)), "utf-8")
    return 3 if any(row.problem for row in fresh.values()) else 0


def build_name(setting: Setting) -> str:
    """What the programs of a setting have in common in their names."""
    return f"{setting.workload}/{setting.style}"


def _by_variants(kept: results.Results, wanted: list[Setting]) -> Iterator[tuple[tuple[str, ...], list[Setting]]]:
    """The settings that have the same variants, together."""
    found: dict[tuple[str, ...], list[Setting]] = {}
    for setting in wanted:
        variants = tuple(dict.fromkeys(("serial", *(r.variant for r in kept.rows if r.setting == setting))))
        found.setdefault(variants, []).append(setting)
    yield from found.items()


def _said(setting: Setting) -> None:
    _say(f"{setting.workload} {setting.style} {setting.size} {setting.block}")


def _say(what: str) -> None:
    write(what, sys.stderr)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KescoError as error:
        for one in error.diagnostics:
            write(f"error[{one.code}]: {one.message}\n  help: {one.help}", sys.stderr)
        sys.exit(error.exit_code)
