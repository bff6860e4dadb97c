"""Another text in the place of a source, while the compiler is told the source's own name.

**nvcc** gives the source to the host compiler's preprocessor and names it itself in all that follows. So its command
line stays as it is, and a script stands in front of the host compiler: where that is to preprocess the source, it reads
the other text instead, with quoted includes looked for beside the source, and the result names the source alone.
Nothing of what nvcc does later knows that there was another file.

Copies of headers lie beside the text, and are named as the headers themselves likewise.

**clang++** takes an overlay of the file system, in which the text has the source's name, and a copy its header's.

In: the texts, an empty folder, the command. Out: what to change in arguments and environment, or `Impossible`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

from kesco.wrapper.commandline import Command
from kesco.wrapper.includes import DEEPEST

_USED = "used"
Headers = Mapping[str, Sequence[Mapping[str, str]]]
"""For each source the copies of headers that its text includes, as its entry has them."""


class Impossible(Exception):
    """Why a text cannot stand in a source's place."""


class Substitution:
    """What a compiler is started with; `used` says afterwards whether it read every text."""

    def __init__(self, arguments: list[str], environment: dict[str, str], marks: list[str]) -> None:
        self.arguments, self.environment, self.marks = arguments, environment, marks

    def used(self) -> bool:
        """Whether the compiler read the texts, and not the sources themselves."""
        return all(os.path.exists(mark) for mark in self.marks)


def for_nvcc(
    command: Command, arguments: Sequence[str], texts: Mapping[str, bytes], headers: Headers, folder: str,
    environ: Mapping[str, str],
) -> Substitution:  # fmt: skip
    """Have nvcc's host compiler read `texts` in place of the sources that they are named after."""
    if command.hidden and command.host_compiler:
        raise Impossible("the host compiler is named in a file of options")
    changed, environment = list(arguments), dict(environ)
    programs = os.path.join(folder, "bin")
    os.mkdir(programs)
    named = command.host_compiler or environ.get("NVCC_CCBIN", "")
    cases, marks = _cases(texts, headers, folder)
    if named:
        folder_of, base = (named, "gcc") if os.path.isdir(named) else os.path.split(named)
        script = os.path.join(programs, base)
        for name in (base, _other_language(base)):  # nvcc takes gcc to compile, and g++ from beside it to link
            _script(os.path.join(programs, name), os.path.join(folder_of, name), "", cases)
        if command.host_compiler_at:
            place, before = command.host_compiler_at
            changed[place] = before + script
        else:
            environment["NVCC_CCBIN"] = script
    else:
        for name in ("gcc", "g++"):
            _script(os.path.join(programs, name), name, programs, cases)
        environment["PATH"] = programs + os.pathsep + environ.get("PATH", os.defpath)
    return Substitution(changed, environment, marks)


def _other_language(name: str) -> str:
    """The name of a host compiler's program for C++ where this is that for C, and the other way round."""
    for one, other in (("g++", "gcc"), ("gcc", "g++"), ("clang++", "clang"), ("clang", "clang++")):
        if one in name:
            return name.replace(one, other)
    return f"{name}++"


def _cases(texts: Mapping[str, bytes], headers: Headers, folder: str) -> tuple[str, list[str]]:
    """The branches of the script, one for each source."""
    cases, marks = [], []
    for number, (source, text) in enumerate(texts.items()):
        copies = headers.get(source, ())
        names = (source, *(one["path"] for one in copies))
        if any(ord(c) < 32 or c in '"\\' or "\udc80" <= c <= "\udcff" for name in names for c in name):
            raise Impossible("its name has characters that a line directive cannot hold")
        deep = os.path.join(folder, *(str(number) * (DEEPEST + 1)))
        os.makedirs(deep)
        path = os.path.join(deep, "source")
        with open(path, "xb") as file:
            file.write(text)
        more = ""
        for one in copies:
            with open(os.path.join(deep, one["name"]), "xb") as file:
                file.write(one["text"].encode("utf-8", "surrogateescape"))
            place = _for_sed(os.path.join(deep, one["name"]), "&|\\[].*^$")
            more += f';s|"{place}"|"{_for_sed(one["path"])}"|g'
        status = os.stat(source)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # __TIMESTAMP__
        marks.append(os.path.join(folder, f"{_USED}{number}"))
        beside = os.path.dirname(source) or "."
        cases.append(f"{_word(source)}) text={_word(path)} beside={_word(beside)} name={_word(_for_sed(source))} "
                     f"mark={_word(marks[-1])} more={_word(more)};;")  # fmt: skip
    return "\n".join(cases), marks


def _script(path: str, real: str, hidden: str, cases: str) -> None:
    """The script in front of a host compiler; `hidden` is the folder of it, taken off PATH again."""
    restore = f"PATH=${{PATH%%{_word(hidden)}:*}}${{PATH#*{_word(hidden)}:}}" if hidden else ":"
    lines = f"""#!/bin/sh
# The host compiler; where it is to preprocess a source of this command, it reads kesco's text of it.
{restore}
case " $* " in *" -E "*) ;; *) exec {_word(real)} "$@";; esac
text= out= previous= more= left=$#
while [ $left -gt 0 ]; do
  word=$1; shift; left=$((left - 1))
  [ "$previous" = -o ] && out=$word
  previous=$word
  case $word in
{cases}
  *) set -- "$@" "$word"; continue;;
  esac
  set -- "$@" "$text"
done
[ -n "$text" ] && [ -n "$out" ] && [ -d "$beside" ] || exec {_word(real)} "$@"
{_word(real)} -iquote "$beside" "$@" || exit
sed "s|\\"$text\\"|\\"$name\\"|g$more" "$out" > "$out.kesco" && mv "$out.kesco" "$out" && : > "$mark"
"""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
    with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(lines)


def _word(text: str) -> str:
    """A word of the shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def _for_sed(text: str, special: str = "&|\\") -> str:
    return "".join("\\" + c if c in special else c for c in text)


def for_clang(
    arguments: Sequence[str], texts: Mapping[str, bytes], headers: Headers, folder: str, environ: Mapping[str, str]
) -> Substitution:
    """Have clang++ read `texts` in place of the sources that they are named after, and copies in that of headers."""
    roots, places, beside = [], dict[str, str](), list[str]()
    for source, text in texts.items():
        copies = headers.get(source, ())
        files = {source: text, **{one["path"]: one["text"].encode("utf-8", "surrogateescape") for one in copies}}
        for name, content in files.items():
            for one in copies:
                line, own = (one[key].encode("utf-8", "surrogateescape") for key in ("include", "directive"))
                content = content.replace(line, own)
            if os.path.realpath(name) in places:
                raise Impossible(f"{name} is edited for two sources of one command")
            path = places[os.path.realpath(name)] = os.path.join(folder, f"{len(places)}.text")
            with open(path, "xb") as file:
                file.write(content)
            status = os.stat(name)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
            roots.append({"type": "file", "name": os.path.abspath(name), "external-contents": path})
        beside += ["-iquote", os.path.dirname(source) or "."] if copies else []
    overlay = os.path.join(folder, "overlay.json")
    with open(overlay, "x", encoding="utf-8") as out:
        json.dump({"version": 0, "use-external-names": False, "roots": roots}, out)
    # A plugin of kesco's in clang has nothing to add.
    return Substitution([*arguments, *beside, "-ivfsoverlay", overlay], {**environ, "KESCO": "off"}, [])
