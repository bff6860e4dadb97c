"""A CUDA runtime that moves bytes late, for what the prologue's copies do as they run, and programs made with it.

A stream of that runtime is a thread that does nothing until somebody waits for it (or, if it is eager, that does all
as soon as it can); an event is a place in a stream. So memory that is used too early, or not waited for, shows as a
wrong byte, and ThreadSanitizer sees threads that do not wait.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from kesco.emit.prologue import Parts, prologue

RUNTIME = r"""
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
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
constexpr int cudaEventDisableTiming = 2, cudaEnableDefault = 0, cudaStreamNonBlocking = 1;
constexpr int cudaHostAllocDefault = 0, cudaHostAllocMapped = 2;
struct Stream {
  std::mutex guard;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  long given = 0, done = 0, wanted = 0;
  bool ends = false;
  std::atomic<bool> eager{false};  // it runs by itself, too
  long goal() const { return eager ? given : wanted; }
  std::thread worker{[this] {
    std::unique_lock<std::mutex> lock(guard);
    for (;;) {
      changed.wait(lock, [this] { return ends || done < goal(); });
      if (done >= goal()) return;
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
    if (eager) changed.notify_all();
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
int breaks = 0;  // what waiting for an event returns
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->stream != nullptr) event->stream->reach(event->place);
  return static_cast<cudaError_t>(breaks);
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
cudaError_t cudaHostGetDevicePointer(void** device, void* host, int) { return *device = host, cudaSuccess; }
unsigned long long context = 7;
int refuses = 0, state = 0;  // what the driver's calls return
int context_id(void*, unsigned long long* found) { return *found = context, 0; }
using Flag = std::atomic<std::uint32_t>;
int wait_value(Stream* stream, unsigned long long at, std::uint32_t value, unsigned) {
  if (refuses != 0) return refuses;
  auto& flag = *reinterpret_cast<Flag*>(at);
  stream->push([&flag, value] {
    while (static_cast<std::int32_t>(flag.load() - value) < 0) std::this_thread::yield();
  });
  return 0;
}
int write_value(Stream* stream, unsigned long long at, std::uint32_t value, unsigned) {
  auto& flag = *reinterpret_cast<Flag*>(at);
  stream->push([&flag, value] { flag.store(value); });
  return 0;
}
int stream_query(Stream*) { return state; }
cudaError_t cudaGetDriverEntryPoint(const char* name, void** entry, int) {
  const std::string called = name;
  *entry = called == "cuCtxGetId"             ? reinterpret_cast<void*>(&context_id)
           : called == "cuStreamWaitValue32"  ? reinterpret_cast<void*>(&wait_value)
           : called == "cuStreamWriteValue32" ? reinterpret_cast<void*>(&write_value)
           : called == "cuStreamQuery"        ? reinterpret_cast<void*>(&stream_query)
                                              : nullptr;
  return cudaSuccess;
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
  for (Stream* each : streams) each->drain();
  if (on_default != nullptr) on_default->drain();
  std::memcpy(to, from, size);
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t rows, cudaMemcpyKind kind, cudaStream_t stream) {
  for (std::size_t row = 0; row < rows; ++row)
    cudaMemcpyAsync(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width,
                    kind, stream);
  return cudaSuccess;
}
cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                         std::size_t rows, cudaMemcpyKind kind) {
  for (std::size_t row = 0; row < rows; ++row)
    cudaMemcpy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width, kind);
  return cudaSuccess;
}
template <typename T>
char* at(const T& symbol, std::size_t offset) {
  return reinterpret_cast<char*>(const_cast<T*>(&symbol)) + offset;
}
template <typename T>
cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, std::size_t size, std::size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaMemcpyAsync(at(symbol, offset), from, size, kind, stream);
}
template <typename T>
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, std::size_t size, std::size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaMemcpyAsync(to, at(symbol, offset), size, kind, stream);
}
template <typename T>
cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, std::size_t size, std::size_t offset,
                               cudaMemcpyKind kind) {
  return cudaMemcpy(at(symbol, offset), from, size, kind);
}
template <typename T>
cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, std::size_t size, std::size_t offset, cudaMemcpyKind kind) {
  return cudaMemcpy(to, at(symbol, offset), size, kind);
}
"""
FEW_CORES = "cores < 4"
AT_ONCE = 'std::getenv("KESCO_COPIES") != nullptr'
COPIES = Parts(copies=True)


def built(
    folder: Path,
    driver: str,
    changes: Iterable[tuple[str, str]] = (),
    *flags: str,
    parts: Parts = COPIES,
    at_once: bool = True,
) -> Path:
    """The program `driver` with the prologue's functions, whose text has these changes.

    `at_once`: pinned memory pays from the first copy on.
    """
    text = prologue(1, 0, parts)
    assert FEW_CORES in text and AT_ONCE in text
    text = text.replace(AT_ONCE, "true") if at_once else text
    text = text.replace(FEW_CORES, "cores < 0").replace("std::min(cores, 8)", "4")  # whatever this machine has
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    (folder / "copies.cpp").write_text("#include <memory>\n#include <chrono>\n" + RUNTIME + text + driver)
    command = ["g++", "-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Wno-unused-function", "-pthread", *flags]
    subprocess.run([*command, "copies.cpp", "-o", "copies"], cwd=folder, check=True)
    return folder / "copies"


def said(program: Path, **environment: str) -> list[str]:
    """The lines that the program prints."""
    done = subprocess.run(
        [program], capture_output=True, text=True, timeout=120, env={"PATH": "/usr/bin", **environment}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()
