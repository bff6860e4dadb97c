"""What the Clang plugin asks (passes/ScheduleAction.cpp): the text that all passes of one run of the driver compile.

In: the driver's process, the pass that asks, the source as the driver's command names it. Out: two files in the folder
that the passes share, ``answer.json`` and, where something is rewritten, ``text``.

1. The driver's command is that of its process; which passes it starts, in which order, it says itself (``-###``).
2. All of them must have the plugin, and there must be some for the host and for GPUs: else the source stays as it is.
   Only the first may ask: if another one does, the folder was lost, and what the first one compiled is not known.
3. The rest is as in `front`, with a trial: a pass that has begun cannot go back to the source.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from kesco.wrapper import asking, entries
from kesco.wrapper.commandline import load_table, parse
from kesco.wrapper.files import digest, new_folder, remove_folder, write_whole
from kesco.wrapper.running import Signals
from kesco.wrapper.settings import Settings, Wrong

_VERSION = 1  # of the answer
_SETTING, _AGREEMENT = "K702", "K705"
HOST = "host"
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')
_NOT_FOR_KESCO = {
    *("-emit-llvm", "--cuda-compile-host-device", "--offload-host-device", "-ftime-trace", "-fcolor-diagnostics"),
    *("-v", "-H", "-fsyntax-only", "--verbose", "-save-stats", "-ftime-report"),
}
"""Options of the driver that say nothing about what a source means, and would say something about kesco's commands."""
_NOT_FOR_KESCO_WITH_VALUE = {"--serialize-diagnostics", "-serialize-diagnostics", "-dependency-file", "-x"}
_NOT_FOR_KESCO_JOINED = ("-x", "-fplugin=", "-fplugin-arg-", "-fpass-plugin=", "-ftime-trace=", "-R")
_PLUGIN_WORDS = ("-load", "-add-plugin", "-plugin-arg-")


class _Stays(Exception):
    """Why a source is compiled as it is."""


class _Ends(Exception):
    """Why nothing can be compiled."""


def answer(driver: int, asking_pass: str, source: str, folder: str, plugin: str, words: Sequence[str]) -> None:
    """Write the answer for a pass, ``host`` or an architecture; `words` are the plugin's own options."""
    forget_ended(os.path.dirname(os.path.dirname(os.path.abspath(folder))))
    found: dict[str, Any] = {"version": _VERSION, "rewritten": False}
    try:
        command = Driver(driver)
        passes = command.passes(source, plugin)
        if asking_pass != passes[0]:
            raise _Ends(f"what the pass for {passes[0]} compiled is not known to that for {asking_pass}; compile again")
        found["last"] = passes[-1]
        entry = _entry(command, passes, source, words)
        found["why"] = entry["why"]
        if not entry["why"]:
            found["diagnostics"] = [*_done(source, entry["report"]), *entry["report"].get("diagnostics", [])]
        if entry["text"]:
            write_whole(os.path.join(folder, "text"), entry["text"].encode("utf-8", "surrogateescape"))
            found["rewritten"] = True
    except _Stays as problem:
        found["why"] = str(problem)
    except Wrong as problem:
        found["error"] = f"{problem} [{_SETTING}]"
    except _Ends as problem:
        found["error"] = f"{problem} [{_AGREEMENT}]"
    write_whole(os.path.join(folder, "answer.json"), json.dumps(found).encode())


class Driver:
    """A process of clang's driver: its program, and the words behind its name."""

    def __init__(self, pid: int) -> None:
        self.program = os.readlink(f"/proc/{pid}/exe")
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            self.arguments = [os.fsdecode(word) for word in file.read().split(b"\0")[1:-1]]

    def passes(self, source: str, plugin: str) -> list[str]:
        """The passes that it is going to make over a source, in order; raises `_Stays` where it does not say so, does
        not load the plugin in each of them, or reads options that kesco does not see.
        """
        asked = [self.program, *self.arguments, "-###"]
        said = subprocess.run(asked, capture_output=True, text=True, errors="surrogateescape", timeout=60, check=False)
        if "Configuration file: " in said.stderr:
            raise _Stays("clang reads a configuration file, which kesco does not")
        if os.environ.get("CCC_OVERRIDE_OPTIONS"):
            raise _Stays("CCC_OVERRIDE_OPTIONS changes clang's options")
        passes = []
        for line in said.stderr.splitlines():
            words = [re.sub(r"\\(.)", r"\1", word) for word in _WORD.findall(line)] if line.startswith(' "') else []
            if "-cc1" not in words[:2] or words[-1] != source:
                continue
            pairs = list(pairwise(words))
            passes.append(dict(pairs).get("-target-cpu", "") if "-fcuda-is-device" in words else HOST)
            if not any(word == "-load" and _is_file(value, plugin) for word, value in pairs):
                raise _Stays("the plugin is not loaded in every pass")
        if not passes:
            raise _Stays("clang does not say which passes it makes")
        return passes


def _is_file(name: str, path: str) -> bool:
    """Whether the dynamic loader takes `name` for the file at `path`; a name alone is looked for in its folders."""
    return os.path.realpath(name) == path if os.sep in name else name == os.path.basename(path)


def _done(source: str, report: dict[str, Any]) -> list[dict[str, object]]:
    """What was rewritten, as remarks."""
    return [
        {
            "severity": "remark",
            "message": f"'{one['function']}': {_count(one['operations'], 'operation')} on "
            f"{_count(one['streams'], 'stream')}, {_count(one['waits'], 'wait')}, proven",
            "file": source,
            "line": one["line"],
            "column": 1,
        }
        for one in report.get("functions", [])
        if one["rewritten"]
    ]


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _entry(driver: Driver, passes: Sequence[str], source: str, words: Sequence[str]) -> entries.Entry:
    settings = Settings(os.environ)
    settings.add([word if word.startswith("-") else f"--{word}" for word in words], "-fplugin-arg-kesco")
    architectures = [one for one in passes if one != HOST]
    if not architectures or HOST not in passes:
        return entries.without_text("only one side of it is compiled by this command")
    try:
        text = b"" if settings.off else asking.worth_a_look(source, settings)
    except OSError:
        text = b""  # clang will say so
    if not text:
        return entries.without_text("")
    command = parse(driver.arguments, load_table("clang", settings.cache), os.environ)
    flags = flags_for_kesco(command.flags)
    common = asking.common(("plugin", driver.program, ""), settings, [*flags, *architectures])
    key = entries.key([*common, os.fsencode(source), text])
    entry = entries.lookup(settings.cache, key)
    if entry is None and not asking.may_gain(text, settings):
        return entries.without_text("")
    if entry is None:
        question = {
            "sources": {source: (key, digest([text]))},
            "flags": flags,
            "name": "clang++",
            "compiler": driver.program,
            "architectures": architectures,
            "options": settings.options,
            "cache": settings.cache,
            "trial": True,
        }
        entry = _asked(question, settings)
    if settings.reports:
        from kesco.wrapper.reports import write

        write(settings.reports, {source: entry})
    return entry


def flags_for_kesco(flags: Sequence[str]) -> list[str]:
    """The driver's flags without those about plugins, and without what kesco says itself in its own commands."""
    kept: list[str] = []
    left = list(flags)
    while left:
        word = left.pop(0)
        if word == "-Xclang" and left:
            value = left.pop(0)
            if value.startswith(_PLUGIN_WORDS):
                del left[:2]  # -Xclang and the value
            else:
                kept += [word, value]
        elif word in _NOT_FOR_KESCO_WITH_VALUE:
            del left[:1]
        elif word not in _NOT_FOR_KESCO and not word.startswith(_NOT_FOR_KESCO_JOINED):
            kept.append(word)
    return kept


def _asked(question: dict[str, Any], settings: Settings) -> entries.Entry:
    folder = new_folder()
    try:
        with Signals() as signals:
            request = os.path.join(folder, "request")
            asked = asking.start(request, question)
            signals.children.append(asked)
            (entry,) = asking.finish(asked, request, question["sources"], settings).values()
            return entry
    finally:
        remove_folder(folder)


def forget_ended(sessions: str) -> None:
    """Remove the folders of drivers that are no more, such as those that were killed."""
    with contextlib.suppress(OSError):
        for name in os.listdir(sessions):
            pid, _, rest = name.partition("-")
            if pid.isdigit() and _start(pid) != rest.partition("-")[0]:
                remove_folder(os.path.join(sessions, name))


def _start(pid: str) -> str:
    """When a process was started, in clock ticks; empty if there is none of this number."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""
