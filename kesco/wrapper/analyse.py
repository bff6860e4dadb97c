"""What kesco makes of the sources of one command.

In: a file with the question, as `front` writes it. Out: an entry for each source beside that file, and in the cache. A
process of its own: a crash, or a time limit that passes, costs the rewriting of one command and nothing else.

1. Ask the compiler for which architectures it compiles: kesco must read a kernel as it is compiled for each of them.
2. Compile, prove. 3. Find out which files were read, and whether the text may be read from another folder.
4. Lead its lines to the source.
"""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import KescoError, ToolchainError
from kesco.frontend.clang import is_standard_path
from kesco.options import Options
from kesco.pipeline import Compilation, compile_file
from kesco.toolchain.flags import translate
from kesco.wrapper import entries, includes
from kesco.wrapper.files import write_whole
from kesco.wrapper.lines import with_lines, without_lines
from kesco.wrapper.substitute import for_clang

_ARCHITECTURE = re.compile(r"__CUDA_ARCH__=(\d+)0\b|\"-target-cpu\" \"sm_(\d+)[af]?\"")
_MOST_ARCHITECTURES = 12


def main(request: str) -> None:
    """Answer all questions of a request."""
    gc.disable()  # this process ends when it has answered
    with open(request, encoding="utf-8") as file:
        question = json.load(file)
    compiled_for = question.get("architectures") or _architectures(question)
    for number, (source, key) in enumerate(question["sources"].items()):
        entry, keep = entry_of(source, question["flags"], compiled_for, question)
        data = entries.dumps(entry)
        if keep:
            entries.store(question["cache"], key, data)
        write_whole(f"{request}.{number}", data)


def entry_of(
    source: str, flags: Sequence[str], compiled_for: Sequence[str], question: dict[str, Any]
) -> tuple[entries.Entry, bool]:
    """The entry of a source, and whether it may be kept; `compiled_for` are architectures such as ``sm_75``."""
    seen: dict[str, Any] = {}
    named = [f"--gpu-architecture={arch}" for arch in compiled_for]
    entry = entries.without_text("")
    keep, found = True, includes.Includes()
    if not compiled_for:
        entry["why"] = "the compiler does not say for which architectures it compiles"
        return entry, False
    try:
        with open(source, "rb") as file:
            before = file.read()
        result = compile_file(source, Options(flags=(*flags, *named), **question["options"]), seen.__setitem__)
        entry["report"] = _report(result)
        text = result.text
    except ToolchainError as error:
        entry["why"], keep, text = _why(error), False, b""
    except KescoError as error:
        entry["why"], text = _why(error), b""
        entry["report"] = {"diagnostics": [d.to_json() for d in error.diagnostics]}
    passed = translate(flags).passed
    found = includes.scan(source, before, passed, seen.get("includes", ()), is_standard_path)
    if not entry["why"] and text != before:
        entry["why"] = found.hazard
        if not found.hazard:
            mapped = with_lines(before, text, result.kept, source)
            if result.source != before or without_lines(mapped, source) != text:
                raise AssertionError("the directives are not all that was added")
            if question.get("trial") and not compiles(source, mapped, question):
                entry["why"] = "clang does not compile the rewritten text [K703]"
            else:
                entry["text"] = mapped.decode("utf-8", "surrogateescape")
    profile = os.path.join(os.path.dirname(os.path.realpath(question["compiler"])), "nvcc.profile")
    entry["files"] = _files(found, seen.get("toolchain"), profile)
    entry["missing"] = found.missing
    return entry, keep


def _files(found: includes.Includes, toolchain: Any, profile: str) -> list[list[object]]:
    """The files that decide an entry, as it names them: what was included, the tools, and nvcc's own settings."""
    files = [entries.described(path, not is_standard_path(path)) for path in found.files if os.path.isfile(path)]
    tools = [profile]
    if toolchain is not None:
        header = toolchain.cuda_path / "include" / "cuda_runtime_api.h"
        tools += [toolchain.clang[0], str(toolchain.libclang), str(header)]
    return files + [entries.described(path, False) for path in tools if os.path.isfile(path)]


def _architectures(question: dict[str, Any]) -> tuple[str, ...]:
    """What the compiler is going to compile for, by its own word; none if it does not say."""
    asking = "--dryrun" if question["name"] == "nvcc" else "-###"
    command = [question["compiler"], *question["arguments"], asking]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60, check=False)
    found = {first or second for first, second in _ARCHITECTURE.findall(done.stdout + done.stderr)}
    if len(found) > _MOST_ARCHITECTURES:
        return ()
    return tuple(f"sm_{number}" for number in sorted(found, key=int))


def compiles(source: str, text: bytes, question: dict[str, Any]) -> bool:
    """Whether clang takes a text in the source's place, in all passes; for those who cannot ask again afterwards."""
    with tempfile.TemporaryDirectory(prefix="kesco-") as folder:
        words = [*question["flags"], "-fsyntax-only", "-Wno-unused-command-line-argument", "-x", "cuda", source]
        change = for_clang(words, {source: text}, folder, os.environ)
        command = [question["compiler"], *change.arguments]
        done = subprocess.run(command, env=change.environment, capture_output=True, check=False)
    return done.returncode == 0


def _why(error: KescoError) -> str:
    first: Diagnostic = error.diagnostics[0]
    place = f"{first.span.path}:{first.span.line}:{first.span.column}: " if first.span else ""
    return f"{place}{first.message} [{first.code}]".replace("\n", " ")


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
