"""The file form of a trace: the JSON that Perfetto and chrome://tracing open.

In: `Activities` or a file's bytes. Out: the other one. Each device is a process and each stream a thread; what kesco
needs to read a file again is in the arguments of its events, so a trace is one file for people and for programs.
A file that is damaged, or not written by kesco, is refused (K554). Source: "Trace Event Format", Google, 2016.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError
from kesco.ir.activity import Activities, Activity

VERSION = 1
BAD_TRACE = "K554"
_KINDS = ("kernel", "copy", "memset", "wait")
_HOST = 1_000_000  # the process of the host's waits: no device has this number


def to_json(activities: Activities) -> str:
    """The trace as text; the same activities always give the same."""
    events: list[dict[str, Any]] = []
    for device in sorted({one.device for one in activities.work}):
        events.append(_named("process_name", device, 0, f"GPU {device}"))
    if len(activities.work) < len(activities.all):
        events.append(_named("process_name", _HOST, 0, "host"))
    for device, context, stream in sorted({(one.device, one.context, one.stream) for one in activities.work}):
        events.append(_named("thread_name", device, _thread(context, stream), f"stream {stream}, context {context}"))
    for one in activities.all:
        waits = one.kind == "wait"
        events.append(
            {
                "name": one.name,
                "cat": one.kind,
                "ph": "X",
                "ts": round(one.start, 3),
                "dur": round(one.end - one.start, 3),
                "pid": _HOST if waits else one.device,
                "tid": _thread(one.context, 0 if waits else one.stream),
                "args": {
                    "device": one.device,
                    "context": one.context,
                    "stream": one.stream,
                    "bytes": one.bytes,
                    "detail": one.detail,
                },
            }
        )
    about = {"format": "kesco-trace", "version": VERSION, "program": activities.name, "lost": activities.lost}
    return json.dumps({"displayTimeUnit": "ns", "otherData": about, "traceEvents": events}, indent=0) + "\n"


def _thread(context: int, stream: int) -> int:
    return context * 100_000 + stream + 1


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def read(path: Path) -> Activities:
    """The trace of a file; raises `UsageError` (K554) for one that is no trace of kesco's, or damaged."""
    try:
        value = json.loads(path.read_bytes())
    except OSError as problem:
        raise _bad(path, problem.strerror or str(problem)) from None
    except ValueError:
        raise _bad(path, "it is not JSON") from None
    about = value.get("otherData") if isinstance(value, dict) else None
    if not isinstance(about, dict) or about.get("format") != "kesco-trace":
        raise _bad(path, "'kesco trace' did not write it")
    if about.get("version") != VERSION:
        raise _bad(path, f"it has version {about.get('version')}, and this kesco reads {VERSION}")
    try:
        found = [_activity(one) for one in value["traceEvents"] if one["ph"] == "X"]
        name, lost = str(about["program"]), int(about["lost"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _bad(path, "it is damaged") from None
    return Activities(name, tuple(sorted(found, key=lambda one: (one.start, one.end))), lost)


def _activity(event: dict[str, Any]) -> Activity:
    start, args = float(event["ts"]), event["args"]
    kind, length = str(event["cat"]), float(event["dur"])
    if kind not in _KINDS or not length >= 0 or not abs(start) < 1e15:
        raise ValueError(kind)
    return Activity(
        kind, str(event["name"]), start, start + length, int(args["device"]), int(args["context"]),
        int(args["stream"]), int(args["bytes"]), str(args["detail"]),
    )  # fmt: skip


def _bad(path: Path, why: str) -> UsageError:
    what = f"{path} is no trace that can be read: {why}"
    return UsageError(
        Diagnostic(BAD_TRACE, Severity.ERROR, what, help="make one with 'kesco trace -o run.json -- ./app'")
    )
