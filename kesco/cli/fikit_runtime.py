"""``kesco fikit`` on a GPU: the daemon, programs under it, and measuring one alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from kesco.cli.fikit import DONE, KINDS, QUIET, fikit_group, setting, tell
from kesco.cli.output import Printer, ends_well, refused, writable, write_whole
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import KescoError, UsageError

__all__ = ["fikit_group"]  # with all its commands

_LAST_USER, _MOST_USERS = (1 << 32) - 2, 127  # kesco/runtime/fikit/daemon.cpp
_KINDS = tuple(kind for kind in KINDS if kind != "clairvoyant")  # which only a replay can be
_PROMISE, _SHARE = 5, 70  # percent
_BY_ITSELF = "the program runs as it would by itself. For another time: "
GPU = click.option("--gpu", default="", metavar="UUID|NUMBER", help="Which one (default: the first visible one).")
OF = click.option("--of", "owner", default="", metavar="USER", help="Another user's daemon, which lists you (--user).")


def _given(command: tuple[str, ...]) -> tuple[str, ...]:
    if not command:
        help_ = "write it behind '--': kesco fikit run --priority 5 -- ./app"
        raise UsageError(Diagnostic("K104", Severity.ERROR, "no program is given", help=help_))
    return command


def _percent(context: click.Context, option: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,3})%?", text.strip())
    if not found or not 1 <= int(found[1]) <= 100:
        raise click.BadParameter(f"'{text}' is no percentage from 1% to 100%", context, option)
    return int(found[1])


_SERVING = (
    GPU,
    click.option("--profile", metavar="TASKS.kfikit", help="What is known of the tasks, from 'kesco fikit profile'."),
    click.option("--policy", type=click.Choice(_KINDS), default="quantile", show_default=True, help="Who may launch."),
    click.option("--cap", type=click.IntRange(0, 9), default=9, show_default=True, help="No task gets more than this."),
    click.option("--user", "users", multiple=True, metavar="UID:0..9", help="Let another user in, up to a priority."),
    click.option(
        "--set", "chosen", multiple=True, metavar="NAME=VALUE", help="A setting of policy.h, such as guard_ns=2e4."
    ),
    click.option("--record", metavar="FILE", help="Write what happens, for 'explain' and 'timeline'."),
    click.option("--mps", is_flag=True, help="Start MPS; lower tasks run beside a busy one where that costs little."),
    click.option("--promise", metavar="PERCENT", callback=_percent, help="With --mps: what it may cost (default: 5%)."),
    click.option("--share", metavar="PERCENT", callback=_percent,
                 help="With --mps: of the SMs, for tasks of priority 8 and less (default: 70%)."),
)  # fmt: skip


def serving(command: Callable[..., None]) -> Callable[..., None]:
    """With the options of the daemon."""
    for option in reversed(_SERVING):
        command = option(command)
    return command


@fikit_group.command("serve")
@serving
@QUIET
def serve_command(
    profile: str | None, record: str | None, gpu: str, quiet: bool, mps: bool, promise: int | None, share: int | None,
    **given: Any,
) -> None:  # fmt: skip
    """Decide which process may launch on a GPU, until a signal ends it. When it ends, everyone goes on."""
    printer = Printer("text", quiet)
    with ends_well(printer):
        from kesco.fikit import places
        from kesco.fikit.programs import daemon
        from kesco.ir import kfikit

        beside = beside_words(mps, promise, share)
        words, name = daemon_words(**given), places.gpu_name(gpu)
        path, kept = places.socket_path(name), []
        if given["users"]:
            words += ["--shared", str(places.shared_path(name))]
        if profile is not None:  # as a file without a name, which no other daemon can take for its own
            costs = os.memfd_create("costs", 0)
            with os.fdopen(costs, "wb", closefd=False) as file:
                file.write(kfikit.to_text(kfikit.read(Path(profile))).encode())
            words += ["--costs", f"/proc/self/fd/{costs}"]
            kept = [costs]
        if record is not None:
            writable(Path(record))
            words += ["--record", str(Path(record).absolute())]
        program = str(daemon())
        if not quiet:
            click.echo(f"serving {path}", err=True)
        command = (program, "--socket", str(path), *words)
        if not mps:
            os.execv(program, command)
        from kesco.fikit.mps import served, start

        start(path, share or _SHARE)
        sys.exit(served(command, beside, path, kept, partial(click.echo, err=True)))


def beside_words(mps: bool, promise: int | None, share: int | None) -> list[str]:
    """The daemon's options under MPS; `UsageError` (K104) where they are asked for without it."""
    if not mps and (promise is not None or share is not None):
        what = f"{'--promise' if promise is not None else '--share'} is of use under MPS alone"
        raise UsageError(Diagnostic("K104", Severity.ERROR, what, help="add --mps"))
    return ["--switch-ns", "0", "--beside-permille", str(10 * (promise or _PROMISE))] if mps else []


def daemon_words(policy: str, cap: int, users: tuple[str, ...], chosen: tuple[str, ...]) -> list[str]:
    """The daemon's options; `UsageError` (K104) for a user or a setting that is none."""
    from kesco.fikit.policy import Kind

    words = ["--policy", str(int(Kind[policy.upper()])), "--cap", str(cap)]
    for one in users:
        found = re.fullmatch(r"([0-9]{1,10}):[0-9]", one)
        if not found or int(found[1]) > _LAST_USER or len(users) > _MOST_USERS:
            help_ = f"write UID:PRIORITY, such as 1001:3, for at most {_MOST_USERS} users; 'id -u NAME' says the number"
            raise UsageError(Diagnostic("K104", Severity.ERROR, f"--user {one}: not a user and a priority", help=help_))
        words += ["--user", one]
    for one in chosen:
        name, value = setting(one)
        words += ["--" + name.replace("_", "-"), str(value)]
    return words


@fikit_group.command("unit")
@serving
def unit_command(
    profile: str | None, record: str | None, gpu: str, mps: bool, promise: int | None, share: int | None, **given: Any
) -> None:
    """Print a unit of systemd that keeps 'kesco fikit serve' with these options running for a user."""
    with ends_well(Printer("text", False)):
        from kesco.fikit.unit import unit

        daemon_words(**given)  # else it is the service that fails
        beside_words(mps, promise, share)
        which = gpu or os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
        words = ["--gpu", which] if which else []
        for name, file in (("--profile", profile), ("--record", record)):
            words += [name, str(Path(file).absolute())] if file is not None else []
        words += ["--policy", given["policy"]] if given["policy"] != "quantile" else []
        words += ["--cap", str(given["cap"])] if given["cap"] != 9 else []
        words += ["--mps"] if mps else []
        for name, percent in (("--promise", promise), ("--share", share)):
            words += [name, f"{percent}%"] if percent is not None else []
        words += [word for one in given["users"] for word in ("--user", one)]
        words += [word for one in given["chosen"] for word in ("--set", one)]
        click.echo(unit(words, f"GPU {which}" if which else "the first GPU"), nl=False)


@fikit_group.command("run", context_settings={"ignore_unknown_options": True})
@click.option("--priority", type=click.IntRange(0, 9), default=0, show_default=True, help="9 comes first.")
@click.option("--deadline", type=click.IntRange(1, 60000), default=500, show_default=True, metavar="MS",
              help="No launch is held for longer.")  # fmt: skip
@GPU
@OF
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND")
def run_command(priority: int, deadline: int, gpu: str, owner: str, command: tuple[str, ...]) -> None:
    """Run a program as a task of this priority. Where that cannot be, it runs as it would by itself."""
    printer = Printer("text", False)
    with ends_well(printer):
        from kesco.fikit import mps
        from kesco.fikit.places import gpu_name, reached
        from kesco.fikit.programs import client
        from kesco.fikit.serving import environment, executable, plain, task_key

        program, env = executable(_given(command)[0]), plain()
        try:
            socket = reached(gpu_name(gpu), owner)
            settings = {
                "SOCKET": str(socket),
                "PRIORITY": str(priority),
                "DEADLINE_MS": str(deadline),
                "TASK": task_key(command),
            }
            env = environment(client(), settings) | ({} if owner else mps.environment(socket, priority))
        except (KescoError, OSError) as error:
            found = error.diagnostics if isinstance(error, KescoError) else (refused(error),)
            printer(*(replace(one, severity=Severity.WARNING, help=_BY_ITSELF + one.help) for one in found))
        os.execve(program, command, env)


@fikit_group.command("profile", context_settings={"ignore_unknown_options": True})
@click.option("-o", "--output", default="tasks.kfikit", show_default=True, metavar="TASKS.kfikit",
              help="Where it goes; what is there is added to.")  # fmt: skip
@click.option("--time-limit", "limit", type=click.FloatRange(0.1), default=600.0, show_default=True, metavar="SECONDS")
@click.option("--trace", "record", metavar="RUN.kftrace", help="Also write each launch, to be replayed.")
@click.option(
    "--priority",
    type=click.IntRange(0, 9),
    default=0,
    show_default=True,
    help="The task's, in that trace and under MPS.",
)
@GPU
@DONE
@QUIET
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND")
def profile_command(
    output: str, limit: float, record: str | None, priority: int, gpu: str, command: tuple[str, ...], as_json: bool,
    quiet: bool,
) -> None:  # fmt: skip
    """Run a program alone, and write what its kernels take and what they leave idle."""
    printer = Printer("json" if as_json else "text", quiet)
    with ends_well(printer):
        from kesco.fikit import mps, trace
        from kesco.fikit.places import gpu_name, socket_path
        from kesco.fikit.programs import client
        from kesco.fikit.samples import task_profile, traced
        from kesco.fikit.serving import environment, task_key
        from kesco.ir import kfikit

        key, target, name = task_key(_given(command)), Path(output), gpu_name(gpu)
        writable(target)
        if record is not None:
            writable(Path(record))
        before = kfikit.read(target) if target.exists() else None
        with tempfile.TemporaryDirectory(prefix="kesco-fikit-") as folder:
            settings = {"MEASURE": str(Path(folder) / "samples"), "TASK": key}
            try:
                env = environment(client(), settings) | mps.environment(socket_path(name), priority)
                out = sys.stderr if as_json else None
                ended = subprocess.run(command, env=env, stdout=out, timeout=limit, check=False)
                code = ended.returncode
            except subprocess.TimeoutExpired:  # what was written until then counts
                code = 0
            if code:
                what = f"'{command[0]}' ended with {code}: its times are not kept"
                raise UsageError(Diagnostic("K541", Severity.ERROR, what, help="run it by hand until it ends well"))
            task, files = Path(command[0]).name, list(Path(folder).iterdir())
            found = task_profile(key, task, files)
            if record is not None:
                write_whole(Path(record), trace.to_json(traced(task, key, priority, files)).encode())
        store = kfikit.Store(name, "", (found,))
        if before is not None and (why := before.why_not_with(store)):
            help_ = "write another file with -o"
            raise UsageError(Diagnostic("K533", Severity.ERROR, f"{target} cannot take this run: {why}", help=help_))
        write_whole(target, kfikit.to_json(before + store if before is not None else store).encode())
        count = sum(one.time.count for _, one in found.kernels if one.time)
        done = {"output": output, "task": key, "kernels": len(found.kernels), "launches": count, "trace": record}
        tell(f"{target}: task {key}, {len(found.kernels)} kernels, {count} launches", done, as_json, quiet)
