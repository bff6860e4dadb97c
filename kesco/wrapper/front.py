"""``kesco-nvcc``, ``kesco-clang++`` and ``kesco-launch``: what a build starts in place of its compiler.

1. A command that makes no code from CUDA sources, and every command with ``KESCO=off``, becomes the compiler itself.
2. For each source, what kesco makes of it is looked up. Where all is known, the compiler is started once.
3. Where something is not known, the compiler starts on the sources as they are, and beside it a process that finds out.
   If nothing is to be rewritten, the work is done. Otherwise the compiler is ended and started on the rewritten texts.
4. If the compiler does not take those, it gets the sources as they are: the build never depends on kesco.

Results get their names when they are whole. This module starts with the least it can: it runs for every file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from kesco.wrapper import asking, entries
from kesco.wrapper.commandline import Command, load_table, parse
from kesco.wrapper.compilers import CACHES, find, variable
from kesco.wrapper.files import digest, new_folder, remove_folder
from kesco.wrapper.running import Child, Results, Signals, end_as
from kesco.wrapper.settings import VALUES, Settings, Wrong

_AS_IT_IS, _SETTING, _REFUSED, _NO_COMPILER = "K701", "K702", "K703", "K704"


def nvcc() -> None:
    """``kesco-nvcc``: a drop-in for nvcc."""
    _leave(_main("kesco-nvcc", "nvcc", sys.argv[1:]))


def clang() -> None:
    """``kesco-clang++``: a drop-in for clang++."""
    _leave(_main("kesco-clang++", "clang++", sys.argv[1:]))


def launch() -> None:
    """``kesco-launch [OPTIONS] [--] COMPILER ARGUMENTS``: the same in front of a compiler that the build names."""
    words, options = sys.argv[1:], []
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word == "--":
            break
        options.append(word)
        if word in VALUES and words:
            options.append(words.pop(0))
    if not words:
        example = "kesco-launch --streams 4 -- nvcc -c a.cu"
        _say(f"kesco-launch: there is no compiler after the options [{_SETTING}]: {example}")
        _leave(2)
    if os.path.basename(words[0]) in CACHES:
        _say(
            f"kesco-launch: {words[0]} behind kesco would keep results under the name of the serial source "
            f"[{_SETTING}]: put it before: {words[0]} kesco-nvcc -c a.cu"
        )
        _leave(2)
    name = "clang++" if "clang" in os.path.basename(words[0]) else "nvcc"
    _leave(_main("kesco-launch", name, words[1:], words[0], options))


def _leave(status: int) -> None:
    sys.exit(status)


def _say(line: str) -> None:
    try:
        os.write(2, (line.replace("\n", " ") + "\n").encode("utf-8", "replace"))
    except OSError:
        pass


def _main(program: str, name: str, arguments: list[str], named: str = "", options: Sequence[str] = ()) -> int:
    """Do what the compiler of this name would do with these arguments; the exit code is the compiler's."""
    compiler = _which(named) if named else find(name, os.environ)
    if compiler is None:
        asked = os.environ.get(variable(name), "")
        sought = named or (f"{variable(name)} names '{asked}'" if asked else f"none on PATH; set {variable(name)}")
        _say(f"{program}: there is no {name} to compile with [{_NO_COMPILER}]: {sought}")
        return 127
    try:
        settings = Settings(os.environ)
        settings.add(options, program)
        if settings.off:
            _become(compiler, arguments)
        command = parse(arguments, load_table("clang" if name == "clang++" else name, settings.cache), os.environ)
        if settings.check and name == "nvcc":
            from kesco.wrapper import checked

            return checked.run(compiler, arguments, command, _say)
        if settings.check or not command.rewritable:
            if command.unclear and command.sources and not command.passed:
                _say(f"{program}: {command.sources[0]}: compiled as it is [{_AS_IT_IS}]: {command.unclear}")
            _become(compiler, arguments)
    except Wrong as problem:
        _say(f"{program}: {problem} [{_SETTING}]")
        return 2
    except OSError as problem:
        _say(f"{program}: cannot run {compiler}: {problem.strerror} [{_NO_COMPILER}]")
        return 127
    try:
        return _Build(program, name, compiler, arguments, command, settings).run()
    except OSError as problem:  # no temporary folder, no more processes, …
        _say(f"{program}: {command.sources[0]}: compiled as it is [{_AS_IT_IS}]: {problem.strerror or problem}")
        _become(compiler, arguments)
        raise


def _which(name: str) -> str | None:
    folders = [""] if os.sep in name else os.environ.get("PATH", os.defpath).split(os.pathsep)
    paths = (os.path.join(folder, name) for folder in folders)
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def _become(compiler: str, arguments: Sequence[str]) -> None:
    os.execv(compiler, [compiler, *arguments])


class _Build:
    """One command that makes code from CUDA sources."""

    def __init__(
        self, program: str, name: str, compiler: str, arguments: list[str], command: Command, settings: Settings
    ) -> None:
        self.program, self.name, self.compiler = program, name, compiler
        self.command, self.settings = command, settings
        self.original = arguments
        self.results = Results(*_results(command, arguments))
        self.folder = ""
        self.signals = Signals()

    def run(self) -> int:
        """The exit code of the compiler; does not return where that died of a signal."""
        with self.signals:
            try:
                status = self._run()
            except BaseException:
                self.results.drop()
                raise
            finally:
                if self.folder:
                    remove_folder(self.folder)
        return end_as(status, self.signals.got)

    def _run(self) -> int:
        found, unknown = self._known()
        if unknown:
            status = self._find_out(found, unknown)
            if status is not None:
                return status
        texts = {source: entry["text"] for source, entry in found.items() if entry["text"]}
        if texts:
            status = self._substituted({s: t.encode("utf-8", "surrogateescape") for s, t in texts.items()}, found)
            if status is not None:
                return status
        child = self._start(self.results.arguments)
        child.wait()
        return self._finish(child, found)

    # ---- what is known ------------------------------------------------------------------------------------------

    def _known(self) -> tuple[dict[str, entries.Entry], dict[str, tuple[str, str]]]:
        """Entries of the sources that have one; the keys of the others, with digests of their content."""
        found: dict[str, entries.Entry] = {}
        unknown: dict[str, tuple[str, str]] = {}
        common: list[bytes] = []
        for source in self.command.sources:
            try:
                text = asking.worth_a_look(source, self.settings)
            except OSError:
                continue  # the compiler will say so
            if not text or source.endswith((".o", ".a", ".so")):
                continue
            if not common:
                decides = self.name, self.compiler, self._host_compiler()
                common = asking.common(decides, self.settings, self.command.flags)
            key = entries.key([*common, os.fsencode(source), text])
            entry = entries.lookup(self.settings.cache, key)
            if entry is not None:
                found[source] = entry
            elif asking.may_gain(text, self.settings):
                unknown[source] = key, digest([text])
        return found, unknown

    def _host_compiler(self) -> str:
        """The one that nvcc will start, as far as that changes what a source means."""
        if self.name != "nvcc":
            return ""
        named = self.command.host_compiler or os.environ.get("NVCC_CCBIN", "") or "gcc"
        path = os.path.join(named, "gcc") if os.path.isdir(named) else _which(named)
        return entries.identity(path) if path and os.path.exists(path) else named

    # ---- what is not --------------------------------------------------------------------------------------------

    def _find_out(self, found: dict[str, entries.Entry], unknown: Mapping[str, tuple[str, str]]) -> int | None:
        """Fill `found`, with the compiler at work on the sources as they are; its status if that is all there is."""
        self._make_folder()
        known = [entry for entry in found.values() if entry["text"]]
        child = None if known else self._start(self.results.arguments, kept=os.path.join(self.folder, "first"))
        request = os.path.join(self.folder, "request")
        asked = asking.start(request, self._question(unknown))
        self.signals.children.append(asked)
        found.update(asking.finish(asked, request, unknown, self.settings))
        if self.signals.got or not any(entry["text"] for entry in found.values()):
            if child is None:
                return None
            child.wait()
            child.say()
            return self._finish(child, found)
        if child is not None:
            child.end()
            self.results.drop()
        return None

    def _question(self, unknown: Mapping[str, tuple[str, str]]) -> dict[str, object]:
        return {
            "sources": dict(unknown),
            "flags": self.command.flags,
            "name": self.name,
            "compiler": self.compiler,
            "arguments": self.original,
            "options": self.settings.options,
            "cache": self.settings.cache,
        }

    # ---- compilers ----------------------------------------------------------------------------------------------

    def _start(self, arguments: Sequence[str], kept: str = "", environ: Mapping[str, str] = os.environ) -> Child:
        child = Child(self.compiler, [self.compiler, *arguments], environ, kept, apart=bool(kept))
        self.signals.children.append(child)
        if self.signals.got:
            child.signal(self.signals.got)
        return child

    def _substituted(self, texts: Mapping[str, bytes], found: dict[str, entries.Entry]) -> int | None:
        """The status of the compiler on the texts, or None if it has to be started on the sources."""
        from kesco.wrapper import substitute

        self._make_folder()
        why = "the host compiler that nvcc starts is not the one on PATH"
        headers = {source: found[source]["headers"] for source in texts}
        try:
            if self.name == "nvcc":
                arguments = self.results.arguments
                change = substitute.for_nvcc(self.command, arguments, texts, headers, self.folder, os.environ)
            else:
                arguments = self.results.arguments
                change = substitute.for_clang(arguments, texts, headers, self.folder, os.environ)
            child = self._start(change.arguments, os.path.join(self.folder, "second"), change.environment)
            child.wait()
            used = child.ok and change.used()
            # a text was proven with the headers that kesco read: what nvcc read later must be the same ones
            changed = next(filter(None, (entries.changed(found[s]) for s in texts)), "") if used else ""
            if (used and not changed) or self.signals.got:
                child.say()
                return self._finish(child, found)
            if changed:
                why = f"{changed} changed while it was compiled"
            if not child.ok:
                why = f"{self.name} does not compile the rewritten text [{_REFUSED}]"
            child.end()
        except substitute.Impossible as problem:
            why = str(problem)
        self.results.drop()
        for source in texts:
            found[source] = {**found[source], "text": "", "why": why}
        return None

    def _finish(self, child: Child, found: Mapping[str, entries.Entry]) -> int:
        status = child.status if child.status is not None else 0
        if not child.ok or self.signals.got:
            child.end()
            self.results.drop()
            return status
        self.results.put()
        for source, entry in found.items():
            if entry["why"]:
                _say(f"{self.program}: {source}: compiled as it is [{_AS_IT_IS}]: {entry['why']}")
        if self.settings.reports and found:
            from kesco.wrapper.reports import write

            write(self.settings.reports, found)
        return status

    def _make_folder(self) -> None:
        self.folder = self.folder or new_folder()


def _results(command: Command, arguments: Sequence[str]) -> tuple[Sequence[str], list[tuple[int, str, str]], list[str]]:
    """The arguments, the words among them that name results, and words to add for results that are not named."""
    table, added = command.table, list[str]()
    places: list[tuple[int, str, str]] = []
    one = len(command.sources) == 1 and not command.others
    if command.hidden or command.elsewhere:
        return arguments, [], []
    if command.result_at:
        places.append((command.result_at[0], command.result_at[1], command.result))
        name = command.result
    elif not command.result and one and command.ending:
        name = os.path.splitext(os.path.basename(command.sources[0]))[0] + command.ending
        added += [table["output"][0], name]
        places.append((len(arguments) + 1, "", name))
    else:
        return arguments, [], []
    if command.dependencies:
        if not command.ending:
            return arguments, [], []  # a program: nobody asks for its dependencies like this
        if command.dependency_at:
            places.append((command.dependency_at[0], command.dependency_at[1], command.dependency_file))
        elif not command.dependency_file:
            file = os.path.splitext(name)[0] + ".d"
            added += [table["dependency_output"][0], file]
            places.append((len(arguments) + len(added) - 1, "", file))
        if not command.dependency_target:
            added += [table["dependency_target"][0], name]
    return arguments, places, added
