"""What ``kesco_copy`` does as it runs: the prologue, compiled for the host alone, with a runtime that moves bytes late.

A stream of that runtime is a thread that moves nothing until somebody waits for it; an event is a place in a stream. So
a piece of the ring that is used too early, or not waited for, shows as a wrong byte, and ThreadSanitizer sees threads
that do not wait.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kesco.emit.prologue import Parts, prologue

RUNTIME = r"""
#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>
enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorNotReady = 600, cudaErrorLaunch = 719 };
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice };
enum cudaDeviceAttr { cudaDevAttrPageableMemoryAccess };
struct cudaPointerAttributes { cudaMemoryType type; };
#define CUDART_VERSION 12000
constexpr int cudaEventDisableTiming = 2, cudaEnableDefault = 0, cudaHostAllocDefault = 0, cudaStreamNonBlocking = 1;
struct Stream {
  std::mutex guard;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  long given = 0, done = 0, wanted = 0;
  bool ends = false;
  std::thread worker{[this] {
    std::unique_lock<std::mutex> lock(guard);
    for (;;) {
      changed.wait(lock, [this] { return ends || done < wanted; });
      if (done >= wanted) return;
      auto next = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      next();
      lock.lock();
      ++done;
      changed.notify_all();
    }
  }};
  ~Stream() {
    { std::lock_guard<std::mutex> lock(guard); ends = true; }
    changed.notify_all();
    worker.join();
  }
  void push(std::function<void()> work) {
    std::lock_guard<std::mutex> lock(guard);
    queue.push_back(std::move(work));
    ++given;
  }
  void reach(long place) {
    std::unique_lock<std::mutex> lock(guard);
    wanted = std::max(wanted, place);
    changed.notify_all();
    changed.wait(lock, [&] { return done >= place; });
  }
  void drain() { reach(given); }
};
struct Event { Stream* stream = nullptr; long place = 0; };
using cudaStream_t = Stream*;
using cudaEvent_t = Event*;
const cudaStream_t cudaStreamLegacy = nullptr;
std::set<std::string> seen;
std::vector<std::pair<const char*, const char*>> pinned;
int shared_pages = 0, fails_after = -1, staged = 0;
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) { return *value = shared_pages, cudaSuccess; }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* found, const void* pointer) {
  found->type = cudaMemoryTypeUnregistered;
  for (auto& [low, high] : pinned)
    if (low <= pointer && pointer < high) found->type = cudaMemoryTypeHost;
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, std::size_t size, int) {
  char* made = new char[size];
  pinned.emplace_back(made, made + size);
  return *memory = made, cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, int) { return *event = new Event, cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, int) { return *stream = new Stream, cudaSuccess; }
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return *stream = new Stream, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->stream = stream;
  event->place = stream->given;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->stream != nullptr) event->stream->reach(event->place);
  return cudaSuccess;
}
Stream* on_default = nullptr;  // what the legacy default stream was given
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream == nullptr) stream = on_default;
  if (stream != nullptr) stream->drain();
  return cudaSuccess;
}
std::vector<Stream*> streams;
cudaError_t cudaDeviceSynchronize() {
  seen.insert("device");
  for (Stream* each : streams) each->drain();
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDriverEntryPoint(const char*, void** entry, int) {
  static int (*id)(void*, unsigned long long*) = [](void*, unsigned long long* found) { return *found = 7, 0; };
  return *entry = reinterpret_cast<void*>(id), cudaSuccess;
}
cudaError_t cudaFree(void*) { return cudaSuccess; }
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
  if (fails_after == 0) return cudaErrorLaunch;
  if (fails_after > 0) --fails_after;
  cudaPointerAttributes host;
  cudaPointerGetAttributes(&host, kind == cudaMemcpyHostToDevice ? from : to);
  if (host.type == cudaMemoryTypeUnregistered && kind == cudaMemcpyHostToDevice) {  // the driver reads it at once
    const char* begin = static_cast<const char*>(from);
    auto kept = std::make_shared<std::vector<char>>(begin, begin + size);
    stream->push([=] { std::memcpy(to, kept->data(), size); });
    return cudaSuccess;
  }
  staged += host.type == cudaMemoryTypeHost;
  stream->push([=] { std::memcpy(to, from, size); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size, cudaMemcpyKind) {
  seen.insert("plain");
  std::memcpy(to, from, size);
  return cudaSuccess;
}
"""
DRIVER = r"""
int main() {
  Stream one, two;
  streams = {&one, &two};
  for (std::size_t size : {std::size_t(0), std::size_t(5), std::size_t(1) << 16, std::size_t(3) << 20,
                           (std::size_t(8) << 20) + 1, std::size_t(16) << 20, (std::size_t(37) << 20) + 12345}) {
    std::vector<char> device(size), host(size), back(size), more(size), other(size);
    for (std::size_t i = 0; i < size; ++i) host[i] = static_cast<char>(i * 0x9e3779b97f4a7c15u >> 56);
    const std::vector<char> kept = host;
    std::vector<char> second(kept.rbegin(), kept.rend());
    bool ok = kesco_copy(device.data(), host.data(), size, cudaMemcpyHostToDevice, &one) == cudaSuccess;
    std::fill(host.begin(), host.end(), 'x');  // the source has been read
    ok = ok && kesco_copy(other.data(), second.data(), size, cudaMemcpyHostToDevice, &two) == cudaSuccess;
    ok = ok && kesco_copy(back.data(), device.data(), size, cudaMemcpyDeviceToHost, &one) == cudaSuccess;
    ok = ok && back == kept;  // the copy is complete
    ok = ok && kesco_copy(more.data(), other.data(), size, cudaMemcpyDeviceToHost, &two, true) == cudaSuccess;
    const char* waited = seen.count("device") ? "waited" : "";
    std::printf("%zu %s %d %s\n", size, ok && more == second ? "right" : "WRONG", staged, waited);
    staged = 0;
    seen.clear();
  }
  // What is pending, there or on the default stream, may write the source: a host function, say.
  Stream legacy;
  on_default = &legacy;
  for (std::size_t size : {(std::size_t(1) << 16) + 1, std::size_t(3) << 20, std::size_t(9) << 20})
    for (Stream* before : {&one, &legacy}) {
      std::vector<char> late(size, 'x'), device(size), back(size);
      before->push([&] { std::fill(late.begin(), late.end(), 'y'); });
      const bool ok = kesco_copy(device.data(), late.data(), size, cudaMemcpyHostToDevice, &one) == cudaSuccess;
      one.drain();
      before->drain();
      std::printf("late %s\n", ok && device == std::vector<char>(size, 'y') ? "right" : "WRONG");
    }
  on_default = nullptr;
  std::vector<char> a(std::size_t(9) << 20, 'a'), b(a.size());
  for (fails_after = 0; fails_after < 8; fails_after += 3) {
    const int after = fails_after;
    const cudaError_t in = kesco_copy(b.data(), a.data(), a.size(), cudaMemcpyHostToDevice, &one);
    fails_after = after;
    const cudaError_t out = kesco_copy(a.data(), b.data(), a.size(), cudaMemcpyDeviceToHost, &one);
    fails_after = after;
    std::printf("failed %d %d\n", in, out);
  }
  fails_after = -1;
  one.drain();
  shared_pages = 1;
  staged = 0;
  const bool ok = kesco_copy(b.data(), a.data(), a.size(), cudaMemcpyHostToDevice, &one) == cudaSuccess;
  std::printf("shared %d %d\n", ok, staged);
  std::vector<std::thread> callers;
  shared_pages = 0;
  int wrong[3] = {};
  Stream owned[3];
  for (int t = 0; t < 3; ++t)
    callers.emplace_back([&, t] {
      Stream& own = owned[t];
      std::vector<char> mine(std::size_t(10) << 20, static_cast<char>('a' + t)), there(mine.size()), back(mine.size());
      kesco_copy(there.data(), mine.data(), mine.size(), cudaMemcpyHostToDevice, &own);
      kesco_copy(back.data(), there.data(), mine.size(), cudaMemcpyDeviceToHost, &own);
      wrong[t] = back != mine;
      own.drain();
    });
  for (std::thread& each : callers) each.join();
  std::printf("threads %d\n", wrong[0] + wrong[1] + wrong[2]);
}
"""
FEW_CORES = "cores < 4"


def built(folder: Path, change: tuple[str, str], *flags: str) -> Path:
    text = prologue(1, 0, Parts(copies=True))
    assert FEW_CORES in text
    text = text.replace(FEW_CORES, "cores < 0").replace("std::min(cores, 8)", "4")  # whatever this machine has
    assert change[0] in text
    (folder / "copies.cpp").write_text(
        "#include <memory>\n#include <chrono>\n" + RUNTIME + text.replace(*change) + DRIVER
    )
    command = ["g++", "-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Wno-unused-function", "-pthread", *flags]
    subprocess.run([*command, "copies.cpp", "-o", "copies"], cwd=folder, check=True)
    return folder / "copies"


def said(program: Path, **environment: str) -> list[str]:
    done = subprocess.run(
        [program], capture_output=True, text=True, timeout=120, env={"PATH": "/usr/bin", **environment}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


SIZES = (0, 5, 1 << 16, 3 << 20, (8 << 20) + 1, 16 << 20, (37 << 20) + 12345)
PIECES = (0, 0, 0, 0, 36, 64, 152)  # through the ring: two copies there and two back


def test_what_is_copied_arrives(tmp_path: Path) -> None:
    lines = said(built(tmp_path, ("", "")))
    assert lines[: len(SIZES)] == [f"{size} right {n} waited" for size, n in zip(SIZES, PIECES, strict=True)]
    assert lines[len(SIZES) :] == ["late right"] * 6 + ["failed 719 719"] * 3 + ["shared 1 0", "threads 0"]


def test_threads_wait_for_each_other(tmp_path: Path) -> None:
    program = built(tmp_path, ("", ""), "-fsanitize=thread")
    if "unexpected memory mapping" in subprocess.run([program], capture_output=True, text=True).stderr:
        pytest.skip("ThreadSanitizer does not run on this kernel")
    assert "threads 0" in said(program)


@pytest.mark.parametrize(
    "change",
    [
        ("error = cudaEventSynchronize(moved[(i + ahead) % slots]);", ";"),  # a slot is filled while it is sent
        ("until(job.done[i % slots], i + 1);", ";"),  # a piece is sent before it is there
        ("if (error == cudaSuccess) error = cudaEventSynchronize(moved[i % slots]);", ";"),  # it is taken too early
        ("if (error == cudaSuccess) error = cudaEventSynchronize(each);", ";"),  # the copy before still needs its slot
        ("error = cudaStreamSynchronize(cudaStreamLegacy);", "error = cudaSuccess;"),  # the source is read too early
        ("if (error == cudaSuccess) error = cudaStreamSynchronize(stream);\n", "\n"),
    ],
)
def test_each_wait_is_needed(tmp_path: Path, change: tuple[str, str]) -> None:
    done = subprocess.run([built(tmp_path, change)], capture_output=True, text=True, timeout=120)
    assert done.returncode or "WRONG" in done.stdout or "threads 0" not in done.stdout
