"""Daemons, workers and MPS for the GPU experiment; all that is started here is ended here."""
# ruff: noqa: T201, D102

from __future__ import annotations

import contextlib
import hashlib
import json
import operator
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from places import Places

from kesco.fikit import programs, samples, serving
from kesco.ir import kfikit

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WARM = 7  # requests before the first turn, its result included, and the result behind it
POLICIES = {"sharing": 1, "strict": 2, "reactive": 3, "mean": 4, "quantile": 5}


class Failed(Exception):
    """Something did not start, did not answer, or answered an error."""


class Worker:
    """A process that does what it is told: `worker.py`, `task.cu`, `launch_cost.cpp`."""

    def __init__(self, command: list[str], env: Mapping[str, str]) -> None:
        pipe = subprocess.PIPE
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self.child = subprocess.Popen(
            command, env=dict(env), stdin=pipe, stdout=pipe, stderr=self.log, start_new_session=True
        )
        self.rest = b""

    def ask(self, words: str) -> None:
        assert self.child.stdin is not None
        try:
            self.child.stdin.write(f"{words}\n".encode())
            self.child.stdin.flush()
        except BrokenPipeError:
            raise Failed(self.why("it ended")) from None

    def answer(self, limit: float) -> dict[str, Any]:
        assert self.child.stdout is not None
        until = time.monotonic() + limit
        with selectors.DefaultSelector() as both:
            both.register(self.child.stdout, selectors.EVENT_READ)
            while b"\n" not in self.rest:
                if not both.select(max(0.0, until - time.monotonic())):
                    raise Failed(self.why(f"no answer within {limit:.0f} s"))
                if not (part := os.read(self.child.stdout.fileno(), 65536)):
                    raise Failed(self.why("it ended"))
                self.rest += part
        line, _, self.rest = self.rest.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def why(self, what: str) -> str:
        self.log.seek(0)
        said = self.log.read().decode("utf-8", "replace").strip().splitlines()
        return f"{what}: {said[-1][:300] if said else 'nothing said'}"

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()
        for one in (self.child.stdin, self.child.stdout, self.log):
            with contextlib.suppress(OSError):
                if one:
                    one.close()


class Bench:
    """Where things are, and how they are started."""

    def __init__(self, fake: bool, places: Places) -> None:
        self.fake, self.places = fake, places
        self.folder = Path(tempfile.mkdtemp(prefix="kf-"))
        self.socket = self.folder / "d0.sock"
        self.client, self.program = programs.client(), programs.daemon()
        self.known: dict[str, kfikit.TaskProfile] = {}
        self.costs: dict[tuple[str, ...], tuple[tuple[kfikit.TaskProfile, ...], Path]] = {}
        self.base = dict(os.environ)
        if fake:
            shared = ("-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(self.folder / "libcuda.so.1"))
            source = str(ROOT / "tests/fikit/fake_driver.cpp")
            subprocess.run(("g++", "-O2", "-std=c++17", *shared, source, "-ldl"), check=True)
            self.base |= {"LD_LIBRARY_PATH": str(self.folder), "FAKE_GPU": str(self.folder / "gpu")}

    def key(self, task: str, rest: float, mark: str = "") -> str:
        return hashlib.sha256(f"{task} {rest:g}{mark}".encode()).hexdigest()[:16]

    def words(self, task: str, rest: float) -> list[str]:
        fake = {"bert": ("60", "20"), "small": ("40", "5"), "product4096": ("1", "2700"), "product8192": ("1", "22000")}
        return [task, f"{rest:g}", *(("--fake", *fake.get(task, ("20", "100"))) if self.fake else ())]

    def of_group(self, under_mps: bool, pair: int = 0) -> None:
        """Each pair has a daemon of its own, with MPS and without: others that are alive must not come to it."""
        self.socket = self.folder / f"{'m' if under_mps else 'd'}{pair}.sock"

    def task_env(
        self, priority: int, task: str, rest: float, base: Mapping[str, str], mark: str = ""
    ) -> dict[str, str]:
        settings = {"SOCKET": str(self.socket), "PRIORITY": str(priority), "TASK": self.key(task, rest, mark)}
        return serving.environment(self.client, settings, base)

    def worker(self, task: str, rest: float, env: Mapping[str, str]) -> Worker:
        return Worker([sys.executable, str(HERE / "worker.py"), *self.words(task, rest)], env)

    def ready(self, worker: Worker, role: str) -> None:
        """Until it is: then it has the CPUs of its role. Until then it has all of them, as many start together."""
        worker.answer(150)
        self.places.put(worker.child.pid, role)

    def profiles(
        self, tasks: list[tuple[str, float]], seconds: float, base: Mapping[str, str] | None = None, mark: str = ""
    ) -> Iterator[tuple[tuple[str, float], Any]]:
        """Measures tasks, each alone; with a mark, in an environment that is another one: yields what each worker said.

        All start together, since that takes longest, and wait for their turns. What they launch until then is no
        part of the profile: they were in each other's way.
        """
        with tempfile.TemporaryDirectory() as parent, contextlib.ExitStack() as stack:
            workers = []
            for number, task in enumerate(tasks):
                (folder := Path(parent) / str(number)).mkdir()
                worker = self.worker(
                    *task, serving.environment(self.client, {"MEASURE": f"{folder}/s"}, base or self.base)
                )
                stack.callback(worker.close)
                workers.append((task, folder, worker))
            for _, _, worker in workers:
                with contextlib.suppress(Failed):
                    self.ready(worker, "high")
            for task, folder, worker in workers:
                try:
                    yield task, self._profile(task, folder, worker, seconds, mark)
                except Exception as problem:
                    yield task, problem

    def _profile(
        self, task: tuple[str, float], folder: Path, worker: Worker, seconds: float, mark: str
    ) -> dict[str, Any]:
        worker.ask(f"run {seconds}")
        said = worker.answer(seconds + 60)
        worker.ask("quit")
        worker.child.wait(30)
        for file in folder.iterdir():
            lines = file.read_text("utf-8", "replace").splitlines(keepends=True)
            launches = sum(line.startswith("S ") for line in lines)
            each = launches / (said["requests"] + WARM)  # what the last request copies back counts as a bit more
            drop = round(each * (WARM - 1))
            kept = []
            for line in lines:
                drop -= line.startswith("S ")
                if drop < 0 or not line.startswith("S "):
                    kept.append(line)
            file.write_text("".join(kept))
        key, name = self.key(*task, mark), f"{task[0]} {task[1]:g}{mark}"
        self.known[key] = found = samples.task_profile(key, name, folder.iterdir())
        kernels = sum(one.time.count for _, one in found.kernels if one.time)
        return said | {"kernels_per_request": round(kernels / (said["requests"] + 1), 2)}

    def costs_of(self, tasks: tuple[str, ...]) -> Path:
        """The file that a daemon reads, with these tasks or all; written anew when a profile is another one."""
        keys = sorted(self.known.keys() & set(tasks) if tasks else self.known)
        known = tuple(self.known[key] for key in keys)
        written, file = self.costs.get(tasks, ((), self.folder / f"costs{len(self.costs)}"))
        if tasks not in self.costs or len(written) != len(known) or any(map(operator.is_not, written, known)):
            file.write_text(kfikit.to_text(kfikit.Store("", "", known)))
            self.costs[tasks] = known, file
        return file

    def serve(self, kind: str, *more: str, tasks: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        """A daemon that knows these tasks, by their keys, or all."""
        costs = self.costs_of(tasks)
        words = [str(self.program), "--policy", str(POLICIES[kind]), "--socket", str(self.socket)]
        words += ["--costs", str(costs), *more]
        with self.places.begun_in("daemon"):
            child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert child.stdout is not None
        if child.stdout.readline() != "ready\n":
            raise Failed(f"the daemon does not serve: {child.communicate()[1]}")
        return child

    def attached(self, count: int, limit: float = 10) -> None:
        """Until so many tasks are there, no more and no less."""
        until = time.monotonic() + limit
        while time.monotonic() < until:
            with contextlib.suppress(Exception):
                if len(serving.status(self.socket)["tasks"]) == count:
                    return
            time.sleep(0.02)
        raise Failed(f"not {count} tasks came to the daemon")

    def status(self) -> dict[str, Any]:
        return serving.status(self.socket)

    def stop(self, daemon: subprocess.Popen[str]) -> None:
        daemon.terminate()
        try:
            daemon.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.communicate()
            print("  the daemon did not end by itself", flush=True)

    @contextlib.contextmanager
    def mps(self) -> Any:
        """The environment of processes under MPS; none where there is no MPS."""
        if self.fake:
            yield self.base | {"FAKE_OWN": "1"}
            return
        own = {"CUDA_MPS_PIPE_DIRECTORY": str(self.folder / "mps"), "CUDA_MPS_LOG_DIRECTORY": str(self.folder / "log")}
        for one in own.values():
            Path(one).mkdir(exist_ok=True)
        env = self.base | own
        with self.places.begun_in("mps"):
            start = ("nvidia-cuda-mps-control", "-d")
            started = subprocess.run(start, env=env, capture_output=True, text=True, timeout=30)
        if started.returncode:
            raise Failed(f"no MPS: {started.stdout} {started.stderr}")
        try:
            yield env
        finally:
            ask = ("nvidia-cuda-mps-control",)
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(ask, input="quit -t 5\n", env=env, capture_output=True, text=True, timeout=30)
