"""``kesco fikit`` on a GPU: the daemon, programs under it, measuring one alone, and what is going on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from kesco.cli.fikit import KINDS, fikit_group
from kesco.cli.output import Printer, ends_well, writable, write_whole
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError

__all__ = ["fikit_group"]  # with all its commands

_KINDS = tuple(kind for kind in KINDS if kind != "clairvoyant")  # which only a replay can be
_GPU = click.option("--gpu", default="", metavar="UUID|NUMBER", help="Which one (default: the first visible one).")


def _given(command: tuple[str, ...]) -> tuple[str, ...]:
    if not command:
        help_ = "write it behind '--': kesco fikit run --priority 5 -- ./app"
        raise UsageError(Diagnostic("K104", Severity.ERROR, "no program is given", help=help_))
    return command


@fikit_group.command("serve")
@_GPU
@click.option("--profile", metavar="TASKS.kfikit", help="What is known of the tasks, from 'kesco fikit profile'.")
@click.option("--policy", type=click.Choice(_KINDS), default="quantile", show_default=True, help="Who may launch.")
@click.option("--cap", type=click.IntRange(0, 9), default=9, show_default=True, help="No task gets more than this.")
@click.option("--user", "users", multiple=True, metavar="UID:0..9", help="Let another user in, up to a priority.")
@click.option(
    "--set", "chosen", multiple=True, metavar="NAME=VALUE", help="A setting of policy.h, such as guard_ns=2e4."
)
def serve_command(
    gpu: str, profile: str | None, policy: str, cap: int, users: tuple[str, ...], chosen: tuple[str, ...]
) -> None:
    """Decide which process may launch on a GPU, until a signal ends it. When it ends, everyone goes on."""
    printer = Printer("text", False)
    with ends_well(printer):
        from kesco.fikit.policy import NAMES, Kind
        from kesco.fikit.programs import daemon
        from kesco.fikit.serving import gpu_name, socket_path
        from kesco.ir import kfikit

        words = ["--policy", str(int(Kind[policy.upper()])), "--cap", str(cap)]
        for one in users:
            words += ["--user", one]
        for one in chosen:
            name, _, value = one.partition("=")
            if name not in NAMES or not _is_number(value):
                help_ = f"write NAME=NUMBER; names are {', '.join(NAMES)}"
                raise UsageError(Diagnostic("K104", Severity.ERROR, f"'{one}' is no setting", help=help_))
            words += ["--" + name.replace("_", "-"), str(int(float(value)))]
        path = socket_path(gpu_name(gpu))
        if profile is not None:
            costs = path.with_suffix(".costs")
            write_whole(costs, kfikit.to_text(kfikit.read(Path(profile))).encode())
            words += ["--costs", str(costs)]
        program = str(daemon())
        click.echo(f"serving {path}", err=True)
        os.execv(program, (program, "--socket", str(path), *words))


def _is_number(text: str) -> bool:
    try:
        return float(text) >= 0
    except ValueError:
        return False


@fikit_group.command("run", context_settings={"ignore_unknown_options": True})
@click.option("--priority", type=click.IntRange(0, 9), default=0, show_default=True, help="9 comes first.")
@click.option("--deadline", type=click.IntRange(1, 60000), default=500, show_default=True, metavar="MS",
              help="No launch is held for longer.")  # fmt: skip
@_GPU
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND")
def run_command(priority: int, deadline: int, gpu: str, command: tuple[str, ...]) -> None:
    """Run a program as a task of this priority. Without a daemon it runs as it would by itself."""
    printer = Printer("text", False)
    with ends_well(printer):
        from kesco.fikit.programs import client
        from kesco.fikit.serving import environment, executable, gpu_name, socket_path, task_key

        program = executable(_given(command)[0])
        settings = {
            "SOCKET": str(socket_path(gpu_name(gpu))),
            "PRIORITY": str(priority),
            "DEADLINE_MS": str(deadline),
            "TASK": task_key(command),
        }
        os.execve(program, command, environment(client(), settings))


@fikit_group.command("profile", context_settings={"ignore_unknown_options": True})
@click.option("-o", "--output", default="tasks.kfikit", show_default=True, metavar="TASKS.kfikit",
              help="Where it goes; what is there is added to.")  # fmt: skip
@click.option("--time-limit", "limit", type=click.FloatRange(0.1), default=600.0, show_default=True, metavar="SECONDS")
@_GPU
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND")
def profile_command(output: str, limit: float, gpu: str, command: tuple[str, ...]) -> None:
    """Run a program alone, and write what its kernels take and what they leave idle."""
    printer = Printer("text", False)
    with ends_well(printer):
        from kesco.fikit.programs import client
        from kesco.fikit.samples import task_profile
        from kesco.fikit.serving import environment, gpu_name, task_key
        from kesco.ir import kfikit

        key, target = task_key(_given(command)), Path(output)
        writable(target)
        before = kfikit.read(target) if target.exists() else None
        with tempfile.TemporaryDirectory(prefix="kesco-fikit-") as folder:
            settings = {"MEASURE": str(Path(folder) / "samples"), "TASK": key}
            try:
                ended = subprocess.run(command, env=environment(client(), settings), timeout=limit, check=False)
                code = ended.returncode
            except subprocess.TimeoutExpired:  # what was written until then counts
                code = 0
            if code:
                what = f"'{command[0]}' ended with {code}: its times are not kept"
                raise UsageError(Diagnostic("K541", Severity.ERROR, what, help="run it by hand until it ends well"))
            found = task_profile(key, Path(command[0]).name, Path(folder).iterdir())
        store = kfikit.Store(gpu_name(gpu), "", (found,))
        if before is not None and (why := before.why_not_with(store)):
            help_ = "write another file with -o"
            raise UsageError(Diagnostic("K533", Severity.ERROR, f"{target} cannot take this run: {why}", help=help_))
        write_whole(target, kfikit.to_json(before + store if before is not None else store).encode())
        count = sum(one.time.count for _, one in found.kernels if one.time)
        click.echo(f"{target}: task {key}, {len(found.kernels)} kernels, {count} launches", err=True)


@fikit_group.command("top")
@_GPU
@click.option("--every", type=click.FloatRange(0.1), metavar="SECONDS", help="Again and again, until it is ended.")
@click.option("--form", type=click.Choice(("text", "json", "prometheus")), default="text", show_default=True)
def top_command(gpu: str, every: float | None, form: str) -> None:
    """Show the tasks of a GPU and what became of their launches."""
    printer = Printer("text", False)
    with ends_well(printer):
        from kesco.fikit.serving import gpu_name, socket_path, status
        from kesco.fikit.telling import metrics, table

        path = socket_path(gpu_name(gpu))
        while True:
            found = status(path)
            if form == "json":
                click.echo(json.dumps(found))
            else:
                click.echo(metrics(found) if form == "prometheus" else table(found), nl=False)
            if every is None:
                return
            sys.stdout.flush()
            time.sleep(every)


@fikit_group.command("explain")
@_GPU
def explain_command(gpu: str) -> None:
    """Say of each task why it is held, what it was granted and why, and what it cost others."""
    printer = Printer("text", False)
    with ends_well(printer):
        from kesco.fikit.serving import gpu_name, socket_path, status
        from kesco.fikit.telling import explain

        found: dict[str, Any] = status(socket_path(gpu_name(gpu)))
        click.echo(explain(found), nl=False)
