"""What is wrong with a run itself, in words: K610 to K620.

In: how the program ended, its record, what was found in it. Out: diagnostics for what makes the run say less than it
should. With a GPU the results are real, so that other things can be wrong than in a dry run, and other advice helps.
"""

from __future__ import annotations

import signal

from kesco.check.messages import count
from kesco.check.places import Places
from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.toolchain.dryrun import NO_SPACE, UNSUPPORTED, Ran
from kesco.verify.races import Findings
from kesco.verify.trace import Failed, Unsupported

FATAL = frozenset({"K610", "K613", "K614", "K616"})
"""The run ended where it should not have: without a race found until then, there is no result."""
NO_GPU = "K618"
_SHOWN = 3  # other functions that returned the same error
_SAYS_NO_GPU = frozenset(
    {
        *("cudaErrorNoDevice", "cudaErrorInsufficientDriver", "cudaErrorStubLibrary", "cudaErrorDevicesUnavailable"),
        *("cudaErrorInitializationError", "cudaErrorSystemNotReady", "cudaErrorSystemDriverMismatch"),
        *("cudaErrorCompatNotSupportedOnDevice", "cudaErrorDeviceNotLicensed"),
    }
)
_DRY = "kernels do nothing in a dry run: "
_HELP = {  # code: without a GPU, with one
    "K613": (
        _DRY + "a loop that waits for a result of the device never ends; --time-limit",
        "--time-limit allows more",
    ),
    "K614": (
        _DRY + "the host read zeros where it expected results",
        "run it alone: its results came from the GPU, so it should crash there, too",
    ),
    "K615": (
        _DRY + "let the program skip the check of its results",
        "its results came from the GPU: read what it said",
    ),
}


def how_it_ended(
    path: str,
    ran: Ran,
    findings: Findings,
    places: Places,
    limit: float,
    full: bool = False,
    gpu: bool = False,
    command: bool = False,
) -> list[Diagnostic]:
    """What is wrong with the run, if anything; `full` is whether there was no room for a record, or for all of it.

    `command` is whether this is what a build made, or runs it.
    """
    if gpu and (refused := next((one for one in findings.failed if one.name in _SAYS_NO_GPU), None)) is not None:
        return [_no_gpu(path, refused, places)]
    ended = _early(path, ran, findings, places, limit, full, gpu)
    if ended is not None:
        return [ended, *_unrecorded(findings, places, gpu), *_failures(findings, places)]
    found = [*_unrecorded(findings, places, gpu), *_failures(findings, places)]
    if ran.returncode:
        what = f"{path} ended with exit code {ran.returncode}"
        notes = (*_last_lines(ran), Note(_seen(findings)))
        found.append(Diagnostic("K615", Severity.WARNING, what, None, notes, _HELP["K615"][gpu]))
    if not findings.operations:
        what = f"{path} did nothing on the device, so there is nothing to check"
        help_ = (
            "what is run must be built by kesco-nvcc with KESCO=check, and have the shared CUDA runtime"
            if command
            else "give its arguments after '--'"
        )
        found.append(Diagnostic("K617", Severity.WARNING, what, help=help_))
    return found


def of_a_process(findings: Findings, places: Places, gpu: bool) -> list[Diagnostic]:
    """What is wrong with the run of one process among several: what it called that is not in its record."""
    last = findings.unsupported[-1:] if not gpu else ()
    return [
        *(_not_supported(one, findings, places) for one in last),
        *_unrecorded(findings, places, gpu),
        *_failures(findings, places),
    ]


def _not_supported(call: Unsupported, findings: Findings, places: Places) -> Diagnostic:
    what = f"{call.function} is not supported in a dry run"
    help_ = "leave it out of this run, or check it on a GPU (--gpu); docs/check.md lists what is supported"
    return Diagnostic("K610", Severity.ERROR, what, places.of_stack(call.stack), (Note(_seen(findings)),), help_)


def _early(
    path: str, ran: Ran, findings: Findings, places: Places, limit: float, full: bool, gpu: bool
) -> Diagnostic | None:
    """An end that the run should not have had."""
    seen = Note(_seen(findings))
    if ran.stopped:
        what = f"{path} did not end within {limit:g} seconds"
        return Diagnostic("K613", Severity.ERROR, what, None, (seen,), _HELP["K613"][gpu])
    if not gpu and ran.returncode == UNSUPPORTED and findings.unsupported:
        return _not_supported(findings.unsupported[-1], findings, places)
    if ran.returncode < 0:
        what = f"{path} was ended by {_signal(-ran.returncode)}"
        return Diagnostic("K614", Severity.ERROR, what, None, (*_last_lines(ran), seen), _HELP["K614"][gpu])
    if (gpu and full) or (not gpu and ran.returncode == NO_SPACE):
        what = f"the record of {path} could not be written"
        help_ = "free space, name another folder with TMPDIR, or run the program with smaller sizes"
        return Diagnostic("K616", Severity.ERROR, what, None, (seen,), help_)
    return None


def _no_gpu(path: str, refused: Failed, places: Places) -> Diagnostic:
    what = f"there is no GPU that {path} can use: {refused.function} returned {refused.name}"
    help_ = "nvidia-smi shows the driver and its GPUs; without --gpu the program is checked in a dry run"
    return Diagnostic(NO_GPU, Severity.ERROR, what, places.of_stack(refused.stack), help=help_)


def _unrecorded(findings: Findings, places: Places, gpu: bool) -> list[Diagnostic]:
    """Functions that went to the real runtime and are not in the record."""
    calls = {one.function: one for one in reversed(findings.unsupported)} if gpu else {}
    return [
        Diagnostic(
            "K619",
            Severity.WARNING,
            f"{one.function} is not in the record: what it did, and what it orders, was not checked",
            places.of_stack(one.stack),
            help="docs/check.md lists what is recorded",
        )
        for one in reversed(calls.values())
    ]


def _failures(findings: Findings, places: Places) -> list[Diagnostic]:
    """Errors that the real runtime returned, each kind once: one that stays is returned by whatever is called then."""
    kinds: dict[str, dict[str, Failed]] = {}
    for one in findings.failed:
        kinds.setdefault(one.name, {}).setdefault(one.function, one)
    result = []
    for name, functions in kinds.items():
        first, *others = functions.values()
        what = f"{first.function} returned {name}: that call is not in the record"
        notes = tuple(Note(f"so did {one.function}", places.of_stack(one.stack)) for one in others[:_SHOWN])
        result.append(Diagnostic("K620", Severity.WARNING, what, places.of_stack(first.stack), notes))
    return result


def _last_lines(ran: Ran) -> tuple[Note, ...]:
    return tuple(Note(f"it said: {line}") for line in ran.said.strip().splitlines()[-3:])


def _seen(findings: Findings) -> str:
    return f"{count(findings.operations, 'operation')} recorded until then"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
