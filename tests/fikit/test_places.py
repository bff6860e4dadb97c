"""Which GPU is meant and where its daemon is; that a program is run whatever stands in the way; what is no daemon."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from kesco.cli import main
from kesco.errors import ToolchainError, UsageError
from kesco.fikit import places, serving
from tests.fikit.yard import LIMIT, Yard

UUID = "GPU-8a5c9f10-1111-2222-3333-44445555aaaa"
LISTED = f"""GPU 0: NVIDIA H200 (UUID: {UUID})
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-8a0c9f10-1111-2222-3333-44445555bbbb)
  MIG 1g.5gb      Device  0: (UUID: MIG-c7384736-1111-2222-3333-44445555cccc)
"""
KESCO = (sys.executable, "-m", "kesco", "fikit")
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """An environment in which nvidia-smi names two GPUs."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{LISTED}END\n")
    program.chmod(0o755)
    return {"PATH": f"{tmp_path}:/usr/bin:/bin"}


@pytest.mark.parametrize("called", ["", "0", "00", " 0", UUID, UUID.lower(), UUID.upper(), UUID[:7], UUID[:12].lower()])
def test_a_gpu_has_one_name(called: str, machine: dict[str, str]) -> None:
    assert places.gpu_name(called, machine) == UUID
    assert places.gpu_name("", machine | {"CUDA_VISIBLE_DEVICES": f"{called},1"}) == UUID


def test_instances_are_gpus_of_their_own(machine: dict[str, str]) -> None:
    assert places.gpu_name("mig-c7", machine) == "MIG-c7384736-1111-2222-3333-44445555cccc"
    assert places.gpu_name("1", machine).endswith("bbbb")


@pytest.mark.parametrize("called", ["GPU-8a", "2", "-1", "GPU-9", "nonsense"])
def test_what_means_no_gpu_or_several_is_refused(called: str, machine: dict[str, str]) -> None:
    with pytest.raises(UsageError) as refused:
        places.gpu_name(called, machine)
    (said,) = refused.value.diagnostics
    assert said.code == "K104" and UUID in said.help


def test_without_the_driver_a_gpu_is_called_as_written(tmp_path: Path) -> None:
    alone = {"PATH": str(tmp_path)}
    assert places.gpu_name("0", alone) == places.gpu_name("00", alone) == "gpu0"
    assert places.gpu_name("gpu-1A", alone) == places.gpu_name("GPU-1a", alone) == "GPU-1a"
    assert places.gpu_name("a/b", alone) == "a_b"
    assert places.gpu_name(UUID.lower(), alone) == UUID


# ---- run fails open -------------------------------------------------------------------------------------------------


def runs(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = (*KESCO, "run", *words, "--", "sh", "-c", "echo $LD_PRELOAD $KESCO_FIKIT_SOCKET; exit 7")
    env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "KESCO_FIKIT_SOCKET": "/of/another"} | env
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 7, done.stderr
    return done


@pytest.mark.parametrize("how", ["missing", "of others", "no folder", "no gpu", "no owner", "no compiler"])
def test_what_stands_in_the_way_of_a_task_does_not_stop_its_program(
    how: str, tmp_path: Path, machine: dict[str, str]
) -> None:
    base = tmp_path / "run"
    env, code, words = {"XDG_RUNTIME_DIR": str(base)}, "K543", []
    if how != "missing":
        base.mkdir()
    if how == "of others":
        (base / "kesco").mkdir()
        (base / "kesco").chmod(0o777)
    if how == "no folder":
        (base / "kesco").write_text("")
    if how == "no gpu":
        code, words, env["PATH"] = "K104", ["--gpu", "7"], f"{machine['PATH']}:{os.environ['PATH']}"
    if how == "no owner":
        code, words = "K104", ["--of", "there is nobody"]
    if how == "no compiler":
        code, env["CXX"], env["XDG_CACHE_HOME"] = "K505", "/there/is/none", str(tmp_path / "cache")
        if (Path(places.__file__).parent.parent / "native").exists():
            pytest.skip("the library is there ready-made")
    done = runs(env, *words)
    assert done.stdout == "\n" and f"warning[{code}]" in done.stderr and "by itself" in done.stderr


@needs_root
@needs_compiler
def test_a_listed_user_finds_the_daemon(open_yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the owner serves at is where the other one's ``run --of`` looks; and the owner's own is another."""
    folder = open_yard.folder
    monkeypatch.setattr(places, "PUBLIC", folder)
    open_yard.socket = places.socket_path("gpu0", {"XDG_RUNTIME_DIR": str(folder)})
    shared = places.shared_path("gpu0")
    assert shared.parent != open_yard.socket.parent and shared.parent.stat().st_mode & 0o777 == 0o711
    open_yard.daemon("--user", "61001:3", "--shared", str(shared))
    os.seteuid(61001)
    try:
        with pytest.raises(UsageError, match="safe place"):
            places.reached("gpu0", "61002")
        assert places.reached("gpu0", "root") == places.reached("gpu0", "0") == shared
        assert serving.status(shared)["tasks"] == []
    finally:
        os.seteuid(0)
    shared.parent.chmod(0o777)
    with pytest.raises(UsageError, match="safe place"):
        places.reached("gpu0", "0")


@pytest.mark.parametrize("one", ["bob:3", "1001:", "-1:9", "4294967296:9", "4294967295:9", ":5", "7:10", "7", "٧:3"])
def test_who_is_let_in_is_a_user(one: str, tmp_path: Path) -> None:
    ended = CliRunner(env={"XDG_RUNTIME_DIR": str(tmp_path)}).invoke(main, ["fikit", "serve", "--user", one])
    assert ended.exit_code == 2 and "K104" in ended.output and f"--user {one}" in ended.output


@pytest.mark.parametrize("command", ["serve", "simulate"])
@pytest.mark.parametrize(
    "one",
    ["guard_ns=inf", "guard_ns=nan", "guard_ns=-1", "guard_ns=1e20", "inflight_launches=4294967296", "guard=1", "x"],
)
def test_a_setting_is_a_number_that_fits(command: str, one: str, tmp_path: Path) -> None:
    trace = tmp_path / "t.kftrace"
    assert CliRunner().invoke(main, ["fikit", "synthesize", "-o", str(trace)]).exit_code == 0
    words = ["fikit", command, "--set", one, *([str(trace)] if command == "simulate" else [])]
    ended = CliRunner(env={"XDG_RUNTIME_DIR": str(tmp_path)}).invoke(main, words)
    assert ended.exit_code == 2 and "K104" in ended.output and one in ended.output


# ---- what is no daemon ----------------------------------------------------------------------------------------------


@pytest.fixture
def false_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """What is put into the list is what one answers."""
    said: list[bytes] = []
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    path = places.socket_path(places.gpu_name("GPU-1"))

    def answer() -> None:
        link, _ = listening.accept()
        with link:
            link.recv(serving._HELLO.size)
            link.sendall(said[0])

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield said
        thread.join(LIMIT)


TASK = dict.fromkeys(serving._NUMBERS, 1) | dict.fromkeys(serving._TEXTS, "") | {
    "grants": [0] * 6, "last_grant": {"kernel": "", "predicted_ns": 0, "gap_left_ns": 0},
}  # fmt: skip


@pytest.mark.parametrize(
    "said",
    [
        b"", b"{}", b"[]", b"3", b"\xff\xfe", b"[" * 100_000, b'{"tasks":3,"holder":0}', b'{"tasks":[{}],"holder":0}',
        json.dumps({"tasks": [TASK | {"priority": "9"}], "holder": 0}).encode(),
        json.dumps({"tasks": [TASK | {"grants": [1]}], "holder": 0}).encode(),
        json.dumps({"tasks": [TASK | {"last_grant": None}], "holder": 0}).encode(),
        json.dumps({"tasks": [TASK], "holder": 0}).encode()[:-9],
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["top", "explain"])
def test_what_is_no_state_of_a_daemon_is_refused(command: str, said: bytes, false_daemon: list[bytes]) -> None:
    false_daemon.append(said)
    ended = CliRunner().invoke(main, ["fikit", command, "--gpu", "GPU-1"])
    assert ended.exit_code == 5 and "K542" in ended.output


def test_who_never_stops_talking_is_left(false_daemon: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_MOST", 1000)
    false_daemon.append(b" " * 5000)
    with pytest.raises(ToolchainError, match="come to an end"):
        serving.status(places.socket_path("GPU-1"))


@pytest.mark.parametrize("form", ["text", "json", "prometheus"])
def test_what_is_one_is_shown(form: str, false_daemon: list[bytes]) -> None:
    false_daemon.append(json.dumps({"tasks": [TASK], "holder": 0}).encode())
    if form == "prometheus":
        pytest.importorskip("prometheus_client")
    ended = CliRunner().invoke(main, ["fikit", "top", "--gpu", "GPU-1", "--form", form])
    assert ended.exit_code == 0, ended.output
