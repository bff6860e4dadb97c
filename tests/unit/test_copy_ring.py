"""What ``kesco_copy`` does as it runs: the prologue, compiled for the host alone, with a runtime that moves bytes late.

A piece of the ring that is used too early, or not waited for, shows as a wrong byte, and ThreadSanitizer sees threads
that do not wait.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from unit.late_runtime import built, said

from kesco.emit.prologue import Parts

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
SIZES = (0, 5, 1 << 16, 3 << 20, (8 << 20) + 1, 16 << 20, (37 << 20) + 12345)
PIECES = (0, 0, 0, 0, 36, 64, 152)  # through the ring: two copies there and two back

EARLY = r"""
constexpr std::size_t unit = 1024;
int main() {
  Stream one, two;
  streams = {&one, &two};
  auto copied = [&](std::size_t size, bool to_device, bool all = false, bool sends = false) {
    std::vector<char> from(size, 'a'), to(size, 'x');
    bool behind = false;
    two.push([&] { behind = true; });  // work on another stream, which nothing asks for
    seen.clear();
    staged = 0;
    const cudaMemcpyKind kind = to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    const auto call = sends ? kesco_send : kesco_copy;
    one.eager = sends;
    bool ok = call(to.data(), from.data(), size, kind, &one, all) == cudaSuccess;
    ok = ok && (!sends || (kesco_sent(), true));
    const char* how = seen.count("plain") ? "plain" : behind ? "all" : staged ? "ring" : "stream";
    one.drain();
    two.drain();
    one.eager = false;
    std::printf("%zu %s %s%s\n", size / unit, ok && to == from ? "right" : "WRONG", how,
                seen.count("device") ? " device" : "");
  };
  copied(0, true);
  for (int i = 0; i < 20; ++i) copied(7 * unit, i % 2);  // small ones do not count
  for (int i = 0; i < 6; ++i) copied(20 * unit, i % 2, i < 2, i == 3);
  {
    std::vector<char> from(50 * unit, 'a'), to(50 * unit, 'x');
    pinned.emplace_back(from.data(), from.data() + from.size());
    staged = 0;
    kesco_copy(to.data(), from.data(), from.size(), cudaMemcpyHostToDevice, &one);
    std::printf("pinned %d\n", staged);
    pinned.pop_back();
  }
  copied(8 * unit - 1, true);
  copied(8 * unit, true);  // 128 with this one
  copied(1 * unit, true);
  copied(9 * unit, true, false, true);
  copied(9 * unit, false);
}
"""
_LITTLE = ("constexpr std::size_t piece = std::size_t{1} << 20;", "constexpr std::size_t piece = 1024;")
_SENDER_PIECE = ("piece = std::size_t{1} << 23, part = std::size_t{1} << 20", "piece = 1 << 13, part = 1 << 10")
HEAD = "namespace {\n"
MUTANT = 'inline int mutant() { static const int one = std::atoi(std::getenv("MUTANT")); return one; }\n'
ASKED = [
    *("0 right stream", *["7 right stream"] * 20),
    *("20 right all device", "20 right all device", *["20 right stream"] * 4, "pinned 1", "7 right stream"),
    *("8 right ring", "1 right stream", "9 right ring", "9 right ring"),
]

# What stands in the text, and instead of it in the mutant; `%` stands for whether the program is that one.
OTHERS = (
    ("pays = reach == KescoReach::host && Kesco", "pays = (% || reach == KescoReach::host) && Kesco"),
    ("if (pays && KescoRing::threads", "if ((% || pays) && KescoRing::threads"),
    ("if (bytes >= least) copied() += bytes;", "if (% || bytes >= least) copied() += bytes;"),
    ("copied() + bytes >= enough) copied()", "(% ? 0 : 0 + copied()) + bytes >= enough) copied()"),
    ("if (bytes >= least && copied() < enough", "if (!% && bytes >= least && copied() < enough"),
    ("waited = all ? cudaDeviceSynchronize()", "waited = !% && all ? cudaDeviceSynchronize()"),
)


def test_pinned_memory_is_made_once_it_pays(tmp_path: Path) -> None:
    """Until then copies go the driver's way, on their stream; each of the mutants is noticed."""
    parts = Parts(copies=True, sends=True)
    changes = [(old, new.replace("%", f"(mutant() == {number})")) for number, (old, new) in enumerate(OTHERS)]
    changes = [_LITTLE, _SENDER_PIECE, *changes, (HEAD, HEAD + MUTANT)]
    program = built(tmp_path, EARLY, changes, parts=parts, at_once=False)
    assert said(program, MUTANT="-1") == ASKED
    assert "20 right stream" not in said(program, MUTANT="-1", KESCO_COPIES="move")
    for number, change in enumerate(OTHERS):
        assert said(program, MUTANT=str(number)) != ASKED, change


ROWS = r"""
static char symbol[1 << 18];
const char* word(bool right) { return right ? "right" : "WRONG"; }
int main() {
  Stream one, two, legacy;
  streams = {&one, &two};
  for (std::size_t rows : {std::size_t(0), std::size_t(3), std::size_t(4000)}) {  // read at once, or not
    const std::size_t pitch = 64, width = 40;
    std::vector<char> host(pitch * rows, 'a'), device(pitch * rows, 'x'), back(pitch * rows, 'x');
    bool late = false;
    two.push([&] { late = true; });
    bool ok = kesco_copy_2d(device.data(), pitch, host.data(), pitch, width, rows, cudaMemcpyHostToDevice, &one) == 0;
    std::fill(host.begin(), host.end(), 'z');  // the source has been read
    ok = ok && kesco_copy_2d(back.data(), pitch, device.data(), pitch, width, rows, cudaMemcpyDeviceToHost, &one) == 0;
    for (std::size_t i = 0; i < back.size(); ++i) ok = ok && back[i] == (i % pitch < width ? 'a' : 'x');
    seen.clear();
    const bool alone = !late;
    kesco_copy_2d(back.data(), pitch, device.data(), pitch, width, rows, cudaMemcpyDeviceToHost, &one, true);
    std::printf("rows %zu %s %d %d\n", rows, word(ok), alone, late);
  }
  for (std::size_t size : {std::size_t(48), std::size_t(1) << 17}) {
    std::vector<char> host(size, 'b'), back(size, 'x');
    bool late = false;
    two.push([&] { late = true; });
    bool ok = kesco_copy_to_symbol(symbol, host.data(), size, 16, cudaMemcpyHostToDevice, &one) == cudaSuccess;
    std::fill(host.begin(), host.end(), 'z');
    ok = ok && kesco_copy_from_symbol(back.data(), symbol, size, 16, cudaMemcpyDeviceToHost, &one) == cudaSuccess;
    ok = ok && back == std::vector<char>(size, 'b') && symbol[15] == 0 && symbol[16 + size] == 0;
    std::printf("symbol %zu %s %d\n", size, word(ok), !late);
    two.drain();
  }
  on_default = &legacy;  // what is pending may write the source
  for (Stream* before : {&one, &legacy}) {
    std::vector<char> late(1 << 17, 'x'), there(1 << 17);
    before->push([&] { std::fill(late.begin(), late.end(), 'y'); });
    kesco_copy_2d(there.data(), 1 << 10, late.data(), 1 << 10, 1 << 10, 1 << 7, cudaMemcpyHostToDevice, &one);
    one.drain();
    std::printf("late %s\n", word(there == std::vector<char>(there.size(), 'y')));
    before->drain();
  }
  on_default = nullptr;
  {  // what is still being fetched is read, and written
    std::vector<char> device(1 << 17, 'c'), other(1 << 17, 'd'), there(1 << 17);
    char* host = new char[1 << 17];
    pinned.emplace_back(host, host + (1 << 17));
    kesco_fetch(host, device.data(), 1 << 17, cudaMemcpyDeviceToHost, &one);
    kesco_copy_2d(there.data(), 1 << 10, host, 1 << 10, 1 << 10, 1 << 7, cudaMemcpyHostToDevice, &two);
    std::printf("fetched %s\n", word(there == device));
    kesco_fetch(host, device.data(), 1 << 17, cudaMemcpyDeviceToHost, &one);
    kesco_copy_2d(host, 1 << 10, other.data(), 1 << 10, 1 << 10, 1 << 7, cudaMemcpyDeviceToHost, &two);
    kesco_fetched();
    std::printf("fetched %s\n", word(std::equal(other.begin(), other.end(), host)));
  }
}
"""
IN_ROWS = [
    *("rows 0 right 1 1", "rows 3 right 1 1", "rows 4000 right 1 1", "symbol 48 right 1", "symbol 131072 right 1"),
    *("late right", "late right", "fetched right", "fetched right"),
]
OTHERS_BY = (
    ("reach != KescoReach::both && to_device) error = kesco_settle", "!% && to_device) error = kesco_settle"),
    ("apart(host, extent)", "apart(host, % ? 0 : extent)"),
    (
        "&& !all && !read) error = cudaStreamSynchronize(stream);\n  return",
        "&& !% && !all && !read) error = cudaStreamSynchronize(stream);\n  return",
    ),
    ("waited = all ? cudaDev", "waited = (% || all) ? cudaDev"),
)


def test_rows_and_symbols_arrive(tmp_path: Path) -> None:
    """Also when other copies are under way; each of the mutants is noticed."""
    parts = Parts(copies=True, sends=True, fetches=True, planes=True, to_symbols=True, from_symbols=True)
    changes = [(old, new.replace("%", f"(mutant() == {number})")) for number, (old, new) in enumerate(OTHERS_BY)]
    program = built(tmp_path, ROWS, [*changes, (HEAD, HEAD + MUTANT)], parts=parts)
    assert said(program, MUTANT="-1") == IN_ROWS
    for number, change in enumerate(OTHERS_BY):
        assert said(program, MUTANT=str(number)) != IN_ROWS, change


def test_what_only_rows_need_gives_no_warning(tmp_path: Path) -> None:
    """`kesco_copy` is there, and nobody calls it."""
    driver = """
int main() {
  Stream one;
  streams = {&one};
  char from[8] = "abcdefg", to[8] = "";
  kesco_streams();
  return kesco_copy_2d(to, 4, from, 4, 4, 2, cudaMemcpyHostToDevice, &one);
}
"""
    flags = ("-Wunused-function", "-Werror")
    assert said(built(tmp_path, driver, (), *flags, parts=Parts(copies=True, planes=True))) == []


def test_what_is_copied_arrives(tmp_path: Path) -> None:
    lines = said(built(tmp_path, DRIVER))
    assert lines[: len(SIZES)] == [f"{size} right {n} waited" for size, n in zip(SIZES, PIECES, strict=True)]
    assert lines[len(SIZES) :] == ["late right"] * 6 + ["failed 719 719"] * 3 + ["shared 1 0", "threads 0"]


@pytest.mark.thorough
def test_threads_wait_for_each_other(tmp_path: Path) -> None:
    program = built(tmp_path, DRIVER, (), "-fsanitize=thread")
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
        ("return error == cudaSuccess ? cudaStreamSynchronize(stream) : error;", "return (void)stream, error;"),
    ],
)
@pytest.mark.thorough
def test_each_wait_is_needed(tmp_path: Path, change: tuple[str, str]) -> None:
    done = subprocess.run([built(tmp_path, DRIVER, [change])], capture_output=True, text=True, timeout=120)
    assert done.returncode or "WRONG" in done.stdout or "threads 0" not in done.stdout
