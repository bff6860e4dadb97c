"""The options of a compilation, as the commands take them: ``compile_options`` adds them, ``options_of`` reads them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import click

from kesco.cli.flags import taken_apart
from kesco.options import Options

_STRATEGIES = ("kesco", "critical_path", "serial", "zones", "zones-fair")
_FORMS = ("streams", "graph", "auto")


def _toolchain_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--clang", help="The clang to use.", metavar="PATH"),
        click.option("--libclang", help="The libclang to use.", metavar="PATH"),
        click.option("--cuda-path", help="The CUDA toolkit to use.", metavar="PATH"),
        click.option("--arch", help="The GPU architecture, such as sm_90.", metavar="SM"),
    ):
        command = option(command)
    return command


def compile_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add all options that decide what a compilation makes."""
    for option in (
        click.option(
            "--streams",
            type=click.IntRange(1, 64),
            help="At most this many streams (default: the graph's width, at most 16).",
        ),
        click.option(
            "--strategy",
            type=click.Choice(_STRATEGIES),
            help="Who goes to which stream (default: zones-fair with tasks, critical_path with a profile, else kesco).",
        ),
        click.option(
            "--zone-limit",
            type=click.IntRange(1, 64),
            default=6,
            show_default=True,
            help="With tasks: at most this many operations of one priority in flight.",
        ),
        click.option(
            "--zone-age",
            type=click.IntRange(0, 1000),
            help="With zones-fair: hold a task at most this many times as long as it runs (default: 4, 0 unprofiled).",
        ),
        click.option(
            "--promise",
            type=click.IntRange(0, 1000),
            help="With zones-fair and a profile: percent that the highest task may lose beside others (default: 10).",
        ),
        click.option("--profile", metavar="RUN.kprof", help="What the operations cost, from 'kesco profile'."),
        click.option(
            "--prefetch/--no-prefetch",
            default=False,
            show_default=True,
            help="Prefetch managed memory that kernels read and the host touched; with streams only.",
        ),
        click.option(
            "--emit",
            type=click.Choice(_FORMS),
            default="streams",
            show_default=True,
            help="Streams, graphs where work runs again and again, or whichever is faster as it runs.",
        ),
        click.option(
            "--copies",
            type=click.Choice(("auto", "keep", "move")),
            default="auto",
            show_default=True,
            help="Keep cudaMemcpy, or put it on streams, copied with threads and in the background, with streams only; "
            "auto: where work then runs beside it, and in functions that are rewritten anyway, if it may pay.",
        ),
        click.option(
            "--memory",
            type=click.Choice(("keep", "reuse")),
            default="keep",
            show_default=True,
            help="Reuse: device memory is allocated before its first use and freed behind its last; with streams only.",
        ),
        click.option(
            "--order",
            type=click.Choice(("need", "keep")),
            default="need",
            show_default=True,
            help="Issue copies, what need not wait for them, and launches of a graph as needed, or as written.",
        ),
        click.option(
            "--syncs",
            type=click.Choice(("move", "keep")),
            default="move",
            show_default=True,
            help="Take out waits of the host where nothing sees the difference, or keep each in its place.",
        ),
        click.option(
            "--launches",
            type=click.Choice(("batch", "keep")),
            default="batch",
            show_default=True,
            help="Give launches of loops to the device many at a time, as graphs, or each by itself.",
        ),
        click.option("--fikit", is_flag=True, help="Put a runtime's hooks around each launch (kesco fikit)."),
        click.option("--force", is_flag=True, help="Rewrite whatever can overlap, even where no gain is expected."),
        click.option(
            "--diagnostics", type=click.Choice(("text", "json")), default="text", help="Form of the diagnostics."
        ),
        click.option("--quiet", "-q", is_flag=True, help="Only errors."),
        click.argument("flags", nargs=-1, type=click.UNPROCESSED),
    ):
        command = option(command)
    return _toolchain_options(command)


def options_of(values: dict[str, Any], environ: Mapping[str, str] = os.environ, headers: str = "") -> Options:
    """The settings of a compilation, from the values of these options."""
    return Options(
        headers=headers,
        streams=values["streams"] or 0,
        strategy=values["strategy"] or "",
        zone_limit=values["zone_limit"],
        zone_age=values["zone_age"],
        promise=values["promise"],
        flags=taken_apart(values["flags"], environ),
        clang=values["clang"],
        libclang=values["libclang"],
        cuda_path=values["cuda_path"],
        arch=values["arch"],
        force=values["force"],
        fikit=values["fikit"],
        prefetch=values["prefetch"],
        memory=values["memory"],
        order=values["order"],
        syncs=values["syncs"],
        launches=values["launches"],
        emit=values["emit"],
        copies=values["copies"],
        profile=values["profile"],
    )
