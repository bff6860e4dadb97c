"""What on this machine helps or hinders FIKIT: GPUs, MIG, MPS, the socket's folder, the daemon, compilers.

In: the environment. Out: findings, each with what follows from it. Nothing is changed, and nothing of CUDA is called:
what is known of GPUs is what ``nvidia-smi`` says.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kesco.errors import KescoError
from kesco.fikit import places, programs, serving
from kesco.toolchain.process import run


@dataclass(frozen=True, slots=True)
class Finding:
    """`level` is ok, note or problem."""

    part: str
    level: str
    found: str
    advice: str = ""


def examine(gpu: str = "", owner: str = "", environ: Mapping[str, str] = os.environ) -> tuple[Finding, ...]:
    """All findings, in the order in which one would look."""
    found = [*_gpus(environ), _mps(environ), _preload(environ)]
    for part, make in (("client", programs.client), ("daemon's program", programs.daemon)):
        found.append(_built(part, make, environ))
    return (*found, *_daemon(gpu, owner, environ))


def _gpus(environ: Mapping[str, str]) -> list[Finding]:
    if not shutil.which("nvidia-smi", path=environ.get("PATH")):
        return [Finding("GPU", "problem", "no nvidia-smi", "without a driver there is nothing to share")]
    query = "index,uuid,name,driver_version,mig.mode.current,compute_mode"
    asked = run(("nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"), timeout=20)
    if asked.returncode:
        return [Finding("GPU", "problem", asked.text.strip().splitlines()[0] if asked.text.strip() else "no answer")]
    return of_gpus(asked.text)


def of_gpus(text: str) -> list[Finding]:
    """The findings in what nvidia-smi says: a line for each GPU with number, UUID, name, driver, MIG and mode."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.strip().splitlines() if line.count(",") == 5]
    found = []
    for index, uuid, name, driver, mig, mode in rows:
        found.append(Finding(f"GPU {index}", "ok", f"{name}, driver {driver}, {uuid}"))
        if mig == "Enabled":
            advice = "a MIG instance is a GPU of its own: give its UUID to 'serve' and 'run', with one daemon for each"
            found.append(Finding(f"GPU {index}", "note", "MIG is on", advice))
        if mode == "Exclusive_Process":
            advice = "only one process may use it unless MPS runs: nvidia-smi -c DEFAULT, or start MPS"
            found.append(Finding(f"GPU {index}", "note", "compute mode is exclusive", advice))
        if mode == "Prohibited":
            found.append(Finding(f"GPU {index}", "problem", "no process may use it", "nvidia-smi -c DEFAULT"))
    if len(rows) > 1:
        advice = "one daemon for each: 'serve --gpu N' and 'run --gpu N'; a process is held for its first GPU only"
        found.append(Finding("GPUs", "note", f"{len(rows)} GPUs", advice))
    return found or [Finding("GPU", "problem", "nvidia-smi names none")]


def _mps(environ: Mapping[str, str]) -> Finding:
    pipe = Path(environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))
    if (pipe / "control").exists():
        advice = "serve with --set switch_ns=0: going from one process to another takes no switch of contexts"
        return Finding("MPS", "note", f"runs at {pipe}", advice)
    return Finding("MPS", "ok", "does not run: processes take turns in time slices")


def _preload(environ: Mapping[str, str]) -> Finding:
    before = environ.get("LD_PRELOAD", "")
    if before:
        advice = "kesco's library is put in front; another one that answers dlsym may take calls from it"
        return Finding("LD_PRELOAD", "note", before, advice)
    return Finding("LD_PRELOAD", "ok", "free")


def _built(part: str, make: Callable[[Mapping[str, str]], Path], environ: Mapping[str, str]) -> Finding:
    try:
        return Finding(part, "ok", str(make(environ)))
    except KescoError as error:
        return Finding(part, "problem", str(error), "apt-get install g++, or set CXX")


def _daemon(gpu: str, owner: str, environ: Mapping[str, str]) -> list[Finding]:
    try:
        path = places.reached(places.gpu_name(gpu, environ), owner, environ)
    except KescoError as error:
        return [Finding("socket", "problem", str(error), " ".join(one.help for one in error.diagnostics))]
    found = [Finding("socket", "ok", str(path))]
    if not path.exists():
        return [*found, Finding("daemon", "note", "none serves this GPU", "kesco fikit serve")]
    if not os.access(path, os.R_OK | os.W_OK):
        advice = "it is another user's; ask for 'serve --user UID:PRIORITY'"
        return [*found, Finding("daemon", "problem", "its socket is not yours to use", advice)]
    try:
        status = serving.status(path)
    except KescoError as error:
        return [*found, Finding("daemon", "problem", str(error), " ".join(one.help for one in error.diagnostics))]
    return [*found, Finding("daemon", "ok", f"answers; {len(status['tasks'])} tasks")]
