"""What kesco says of every CUDA program below a folder, held against what the program does when it runs.

No GPU is needed: kernels do nothing, their results are zeros, ones and random words in turn. What a program calls and
does not bring does nothing; without a `main`, each of its functions is called. Each program is judged in a process of
its own, bounded in time, and runs in its own folder, with the arguments that a file `run` beside it names.

    python scripts/execution.py FOLDER... [--jobs 2] [--seconds 120] [--json FILE] [--only TEXT] [--flag=-DN=4]
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE)]  # there a package has this file's name

from corpus import bounded, include_flags, programs

Row = dict[str, Any]
_SUMS = ("steps", "launches", "sites", "compared", "arguments", "unknown", "touches", "serial", "apart")
_SHARES = ("one", "few", "more", "anything")


def one(path: str, flags: list[str]) -> Row:
    """Judge one program and say what was seen."""
    from execution.judging import judge
    from execution.running import How

    source = Path(path)
    how = How(arguments_of(source), seconds=10, folder=source.parent)
    judged = judge(path, flags, [replace(how, results=results) for results in (0, 1, 2)])
    runs = judged.runs
    shares = {name: max((getattr(told, name) for told in judged.told), default=0) for name in _SHARES}
    return {
        "why_not": judged.why_not or ("it has several host threads" if judged.threads > 1 else ""),
        "steps": judged.steps,
        "launches": judged.launches,
        "sites": len(set().union(*(run.sites for run in runs))),
        "compared": sum(run.launches for run in runs),
        "arguments": sum(run.arguments for run in runs),
        "unknown": sum(run.unknown for run in runs),
        "touches": sum(run.touches for run in runs),
        "serial": sum(run.serial.launches for run in runs if run.serial),
        "apart": sum(run.apart for run in runs),
        **shares,
        "findings": judged.findings,
        "aside": judged.aside,
    }


def arguments_of(source: Path) -> tuple[str, ...]:
    """What a shell script called `run` beside a program gives it, where it starts one of that name, or one at all."""
    try:
        lines = (source.parent / "run").read_text("utf-8", "replace").splitlines()
    except OSError:
        return ()
    started = [words for line in lines if (words := line.partition(">")[0].split()) and words[0].startswith("./")]
    named = [words for words in started if Path(words[0]).name.startswith(source.stem)]
    return tuple(
        (
            named
            or started
            or [
                [
                    "",
                ]
            ]
        )[0][1:]
    )


def in_process(source: Path, root: Path, flags: list[str], seconds: int) -> Row:
    """Judge one program in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "--one", str(source)]
    command += [f"--flag={flag}" for flag in (*include_flags(source, root), *flags)]
    status, said = bounded(command, seconds)
    last = said.strip().rpartition("\n")[2]
    if status == 0 and last.startswith("{"):
        return dict(json.loads(last))
    return {"why_not": f"took over {seconds} s" if status is None else f"ended with {status}: {last[-200:]}"}


def table(rows: dict[str, Row], root: str) -> str:
    """What a folder came to."""
    ran = [row for row in rows.values() if not row["why_not"]]
    total = {name: sum(row[name] for row in ran) for name in (*_SUMS, *_SHARES)}
    wrong = {name: row["findings"] for name, row in rows.items() if row.get("findings")}
    aside = sum(bool(row.get("aside")) for row in rows.values())
    lines = [
        f"{root}: {len(rows)} programs, {len(ran)} run, {len(wrong)} with disagreements ({aside} in what stays serial)",
        f"  {total['steps']} calls of CUDA, {total['launches']} launches",
        f"  {total['compared']} launches at {total['sites']} sites compared, {total['arguments']} pointers,"
        f" {total['unknown']} of them unknown, {total['touches']} accesses of the host",
        f"  {total['serial']} launches in functions that stay serial, {total['apart']} where nothing is said",
    ]
    if any(total[name] for name in _SHARES):
        lines.append(
            f"  host IR: pointers of launches in the text from one allocation site {total['one']}, two to four"
            f" {total['few']}, more {total['more']}, unknown {total['anything']}"
        )
    lines += [f"  {name}: {finding}" for name, findings in wrong.items() for finding in findings]
    reasons: dict[str, int] = {}
    for row in rows.values():
        if row["why_not"]:
            reasons[row["why_not"]] = reasons.get(row["why_not"], 0) + 1
    lines += [f"  not run, {count}: {why}" for why, count in sorted(reasons.items(), key=lambda item: -item[1])]
    return "\n".join(lines)


def say(text: str) -> None:
    """Write it, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--flag", action="append", default=[])
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        say(json.dumps(one(given.one, given.flag)))
        return 0
    results: dict[str, dict[str, Row]] = {}
    for root in given.folders:
        sources = [one for one in programs(root) if given.only in str(one)]
        rows: dict[str, Row] = {}
        with ThreadPoolExecutor(given.jobs) as pool:
            made = pool.map(lambda one, root=root: in_process(one, root, given.flag, given.seconds), sources)
            for source, row in zip(sources, made, strict=True):
                name = str(source.relative_to(root)) if source != root else source.name
                rows[name] = row
                sys.stderr.write(f"{name}: {row['why_not'] or len(row['findings']) or 'as foreseen'}\n")
                results[str(root)] = rows
                if given.json:
                    given.json.write_text(json.dumps(results, indent=1))
        say(table(rows, str(root)))
    return any(row.get("findings") for rows in results.values() for row in rows.values())


if __name__ == "__main__":
    raise SystemExit(main())
