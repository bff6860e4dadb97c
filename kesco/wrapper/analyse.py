"""What kesco makes of the sources of one command.

In: a file with the question, as `front` writes it. Out: an entry for each source beside that file, and in the cache. A
process of its own: a crash, or a time limit that passes, costs the rewriting of one command and nothing else.

1. Ask the compiler for which architectures it compiles: kesco must read a kernel as it is compiled for each of them.
2. Compile, prove. 3. Find out which files were read, and whether the text may be read from another folder.
4. Lead its lines to the source.

What changed while this went on is not rewritten, and what is not known to come out the same again is not kept.
"""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import KescoError, ToolchainError
from kesco.frontend.standard import is_standard_path
from kesco.ir.pieces import Copy, include_of
from kesco.options import Options
from kesco.pipeline import Compilation, compile_file
from kesco.session import changed_since
from kesco.toolchain.flags import translate
from kesco.toolchain.places import cache_folder
from kesco.wrapper import entries, includes
from kesco.wrapper.files import digest, read, write_whole
from kesco.wrapper.lines import with_lines, without_lines
from kesco.wrapper.substitute import for_clang

_STANDARD = re.compile(r"\bcudafe\+\+.* --c\+\+(\d+)\b")
_ARCHITECTURE = re.compile(r"__CUDA_ARCH__=(\d+)0\b|\"-target-cpu\" \"sm_(\d+)[af]?\"")
_MOST_ARCHITECTURES = 12
COPIES = "kesco"
"""What the names of edited copies of headers begin with, in folders where nothing else is."""


def main(request: str) -> None:
    """Answer all questions of a request."""
    gc.disable()  # this process ends when it has answered
    began = time.time_ns()
    with open(request, encoding="utf-8") as file:
        question = json.load(file)
    compiled_for, standard = _compiled(question)
    for number, (source, (key, content)) in enumerate(question["sources"].items()):
        entry, keep = entry_of(source, [*question["flags"], *standard], compiled_for, question)
        if changed := _changed_since(began, source, content, entry):
            entry = {**entry, "text": "", "why": f"{changed} changed while it was compiled"}
            keep = False
        data = entries.dumps(entry)
        # with `native` another GPU may be there the next time
        if keep and not any(f == "native" or f.endswith("-arch=native") for f in question["flags"]):
            entries.store(question["cache"], key, data)
        write_whole(f"{request}.{number}", data)


def _changed_since(began: int, source: str, content: str, entry: entries.Entry) -> str:
    """The source, if it is not the one that was looked up, or a file of the user's that is newer than the question."""
    try:
        if digest([read(source)]) != content:
            return source
        own = (str(path) for path, _, _, theirs in entry["files"] if theirs)
        return next((path for path in own if changed_since(path, began)), "")
    except OSError:
        return source


def entry_of(
    source: str, flags: Sequence[str], compiled_for: Sequence[str], question: dict[str, Any]
) -> tuple[entries.Entry, bool]:
    """The entry of a source, and whether it may be kept; `compiled_for` are architectures such as ``sm_75``."""
    seen: dict[str, Any] = {}
    named = [f"--gpu-architecture={arch}" for arch in compiled_for]
    entry = entries.without_text("")
    keep = True
    if not compiled_for:
        entry["why"] = "the compiler does not say for which architectures it compiles"
        return entry, False
    try:
        before = read(source)
        headers = "" if question.get("trial") else COPIES  # a plugin within clang replaces the source alone
        options = Options(flags=(*flags, *named), headers=headers, **question["options"])
        result = compile_file(source, options, seen.__setitem__)
        entry["report"] = _report(result)
        if question["options"].get("page"):
            from kesco.report.page import page
            from kesco.wrapper.reports import packed

            entry["page"] = packed(page(result))
        text = result.text
    except ToolchainError as error:
        entry["why"], keep, text = _why(error), False, b""
    except KescoError as error:
        entry["why"], text = _why(error), b""
        entry["report"] = {"diagnostics": [d.to_json() for d in error.diagnostics]}
    passed = translate(flags).passed
    toolchain = seen.get("toolchain")
    system = (*includes.SYSTEM, *([str(toolchain.cuda_path / "include")] if toolchain else ()))
    own = str(cache_folder(os.environ))  # of the headers that are kept precompiled: what they are made from
    known = [path for path in seen.get("includes", ()) if not path.startswith(own + os.sep)]
    found = includes.scan(source, before, passed, known, is_standard_path, system)
    if not entry["why"] and text != before:
        deep = b"../" * (includes.DEEPEST + 1)
        far = next((one.path for one in result.headers if deep in one.text), "")
        entry["why"] = found.hazard or (f"{far} includes what is too many folders up" if far else "")
        if not entry["why"]:
            mapped = with_lines(before, text, result.kept, source)
            if result.source != before or without_lines(mapped, source) != text:
                raise AssertionError("the directives are not all that was added")
            if question.get("trial") and not compiles(source, mapped, question):
                entry["why"] = "clang does not compile the rewritten text [K703]"
            else:
                entry["text"] = mapped.decode("utf-8", "surrogateescape")
                entry["headers"] = [_header(one) for one in result.headers]
    profile = os.path.join(os.path.dirname(os.path.realpath(question["compiler"])), "nvcc.profile")
    entry["files"] = _files(found, toolchain, profile)
    entry["missing"] = found.missing
    return entry, keep


def _header(one: Copy) -> dict[str, str]:
    """A copy of a header as an entry has it."""
    mapped = with_lines(one.before, one.text, one.kept, one.path)
    if without_lines(mapped, one.path) != one.text:
        raise AssertionError("the directives are not all that was added")
    texts = {"text": mapped, "include": include_of(one.name), "directive": one.directive.encode()}
    return {"path": one.path, "name": one.name} | {k: t.decode("utf-8", "surrogateescape") for k, t in texts.items()}


def _files(found: includes.Includes, toolchain: Any, profile: str) -> list[list[object]]:
    """The files that decide an entry, as it names them: what was included, the tools, and nvcc's own settings."""
    files = [entries.described(path, not is_standard_path(path)) for path in found.files if os.path.isfile(path)]
    tools = [profile]
    if toolchain is not None:
        header = toolchain.cuda_path / "include" / "cuda_runtime_api.h"
        tools += [toolchain.clang[0], str(toolchain.libclang), str(header)]
    return files + [entries.described(path, False) for path in tools if os.path.isfile(path)]


def _compiled(question: dict[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the compiler is going to compile for, by its own word, none if it does not say; and a flag for the standard.

    Where none is asked for, nvcc takes that of the host compiler, which may be an older one or a newer one. Who knows
    the architectures, and has a compiler that kesco itself asks, says so in the question.
    """
    if "architectures" in question:
        return tuple(question["architectures"]), ()
    asking = "--dryrun" if question["name"] == "nvcc" else "-###"
    command = [question["compiler"], *question["arguments"], asking]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60, check=False)
    told = done.stdout + done.stderr
    found = {first or second for first, second in _ARCHITECTURE.findall(told)}
    if len(found) > _MOST_ARCHITECTURES:
        return (), ()
    asked = any(flag.startswith(("-std", "--std")) for flag in question["flags"])
    standards = [] if asked else [f"-std=gnu++{number}" for number in dict.fromkeys(_STANDARD.findall(told))]
    return tuple(f"sm_{number}" for number in sorted(found, key=int)), tuple(standards[:1])


def compiles(source: str, text: bytes, question: dict[str, Any]) -> bool:
    """Whether clang takes a text in the source's place, in all passes; for those who cannot ask again afterwards."""
    with tempfile.TemporaryDirectory(prefix="kesco-") as folder:
        words = [*question["flags"], "-fsyntax-only", "-Wno-unused-command-line-argument", "-x", "cuda", source]
        change = for_clang(words, {source: text}, {}, folder, os.environ)
        command = [question["compiler"], *change.arguments]
        done = subprocess.run(command, env=change.environment, capture_output=True, check=False)
    return done.returncode == 0


def _why(error: KescoError) -> str:
    first: Diagnostic = error.diagnostics[0]
    place = f"{first.span.path}:{first.span.line}:{first.span.column}: " if first.span else ""
    step = f": {first.help}" if first.help and isinstance(error, ToolchainError) else ""
    return f"{place}{first.message} [{first.code}]{step}".replace("\n", " ")


def _report(result: Compilation) -> dict[str, object]:
    functions = [
        {
            "function": one.region.function,
            "line": one.region.span.line,
            "rewritten": one.rewritten,
            "left_because": one.left_because,
            "operations": len(one.schedule.stream_of) if one.rewritten else 0,
            "streams": one.schedule.streams if one.rewritten else 0,
            "waits": len(one.plan.waits) if one.rewritten else 0,
        }
        for one in result.functions
    ]
    told = [d.to_json() for d in result.diagnostics if d.severity is not Severity.ERROR]
    return {"functions": functions, "diagnostics": told}
