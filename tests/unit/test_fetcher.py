"""What ``kesco_fetch`` and ``kesco_fetched`` do as they run: the prologue, for the host alone, on a late runtime."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from unit.late_runtime import built, said
from unit.test_sender import HEAD, SMALL

from kesco.emit.prologue import Parts

FETCHES = Parts(copies=True, sends=True, fetches=True)
DRIVER = r"""
constexpr std::size_t size = 100000, unit = 1 << 13;
using Bytes = std::vector<char>;
Bytes drawn(std::size_t count, int salt) {
  Bytes made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = static_cast<char>((i + salt) * 0x9e3779b97f4a7c15u >> 56);
  return made;
}
char* page_locked(std::size_t count) {
  void* made = nullptr;
  cudaHostAlloc(&made, count, 0);
  std::memset(made, 'x', count);
  return static_cast<char*>(made);
}
cudaError_t fetch(char* to, const Bytes& from, Stream& stream, bool all = false) {
  return kesco_fetch(to, from.data(), from.size(), cudaMemcpyDeviceToHost, &stream, all);
}
cudaError_t copy(Bytes& to, const char* from, Stream& stream) {
  return kesco_copy(to.data(), from, to.size(), cudaMemcpyHostToDevice, &stream);
}
bool same(const char* memory, const Bytes& wanted) { return std::equal(wanted.begin(), wanted.end(), memory); }
const char* word(bool right) { return right ? "right" : "WRONG"; }

struct Last {  // goes behind all that was registered after it
  Bytes device;
  char* result = nullptr;
  ~Last() {
    if (result != nullptr) std::printf("exit %s\n", word(same(result, device)));
  }
};

int main(int argc, char**) {
  static Last last;
  Stream one, two, three;
  streams = {&one, &two, &three};
  const Bytes a = drawn(size, 1), b = drawn(size, 2);
  if (argc > 1) {  // fails while a copy is under way
    static Stream own;
    last.device = a;
    last.result = page_locked(size);
    fetch(last.result, last.device, own);
    std::exit(3);
  }
  {
    char *x = page_locked(size), *y = page_locked(size);
    const bool ok = fetch(x, a, one) == cudaSuccess && fetch(y, b, two) == cudaSuccess;
    const long done = one.done + two.done;
    const bool waited = kesco_fetched() == cudaSuccess;
    std::printf("later %ld %s\n", done, word(ok && waited && same(x, a) && same(y, b)));
  }
  {  // two in a row on one stream, in the order of which nobody waits for what follows
    char *x = page_locked(size), *y = page_locked(size);
    fetch(x, a, one);
    fetch(y, b, one);
    const long before = one.done;
    one.push([] {});
    kesco_fetched();
    std::printf("one stream %ld %s\n", one.done - before, word(same(x, a) && same(y, b)));
  }
  {  // into one place, by two streams of which the second one is first
    char* x = page_locked(size);
    fetch(x, a, one);
    fetch(x, b, two);
    two.drain();
    kesco_fetched();
    std::printf("twice %s\n", word(same(x, b)));
  }
  {  // the same, and the other copy is waited for at once
    char* x = page_locked(size);
    fetch(x, a, one);
    kesco_copy(x + 5, b.data(), 9, cudaMemcpyDeviceToHost, &two);
    kesco_fetched();
    std::printf("copy %s\n", word(std::equal(x + 5, x + 14, b.begin()) && std::equal(x, x + 5, a.begin())));
  }
  for (bool sends : {false, true}) {  // what was fetched is copied on
    char* x = page_locked(size);
    Bytes there(size);
    fetch(x, a, one);
    if (sends) kesco_send(there.data(), x, size, cudaMemcpyHostToDevice, &two);
    else copy(there, x, two);
    two.drain();
    std::printf("onward %s\n", word(there == a));
    kesco_fetched();
  }
  {  // next to each other
    char* x = page_locked(2 * size);
    Bytes there(size);
    const long before = one.done;
    fetch(x, a, one);
    copy(there, x + size, two);
    std::printf("apart %ld\n", one.done - before);
    kesco_fetched();
  }
  {  // what is small, pageable, or awaited with all else
    char* x = page_locked(size);
    Bytes little = drawn(65535, 3), there(size);
    bool ok = fetch(x, little, one) == cudaSuccess && same(x, little);
    shared_pages = 1;  // the device reaches it by itself
    ok = ok && fetch(there.data(), b, two) == cudaSuccess && there == b;
    shared_pages = 0;
    ok = ok && fetch(x, a, one, true) == cudaSuccess && same(x, a);
    std::printf("at once %s\n", word(ok));
  }
  {  // the middle of a source that is still to be read is pinned
    Bytes source = drawn(8 * unit + 3 * size, 4), there(source.size());
    const Bytes first = source;
    char* x = source.data() + 8 * unit;
    pinned.emplace_back(x, x + size);
    const auto in = cudaMemcpyHostToDevice;
    const bool ok = kesco_send(there.data(), source.data(), source.size(), in, &three) == cudaSuccess;
    std::thread drains([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      three.drain();
    });
    fetch(x, a, two);
    two.drain();
    drains.join();
    kesco_fetched();
    kesco_sent();
    std::printf("source %s\n", word(ok && there == first && same(x, a)));
    fetch(x, b, two);  // and the other way round
    three.eager = true;
    kesco_send(there.data(), source.data(), source.size(), cudaMemcpyHostToDevice, &three);
    kesco_sent();
    three.drain();
    kesco_fetched();
    pinned.erase(std::find(pinned.begin(), pinned.end(), std::pair<const char*, const char*>(x, x + size)));
    std::printf("source %s\n", word(there == source && same(x, b)));
  }
  for (std::size_t bytes : {size, 41 * unit + 1}) {  // into pageable memory, by threads, all round the four places
    const Bytes first = drawn(bytes, 6), second = drawn(bytes, 7);
    Bytes x(bytes), y(bytes);
    const long before = one.done + two.done;
    const bool ok = fetch(x.data(), first, one) == cudaSuccess && fetch(y.data(), second, two) == cudaSuccess;
    const long done = one.done + two.done - before;
    std::thread drains([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      one.drain();
      two.drain();
    });
    const bool waited = kesco_fetched() == cudaSuccess;
    drains.join();
    std::printf("pageable %ld %s\n", done, word(ok && waited && x == first && y == second));
  }
  one.eager = two.eager = true;
  {  // one after the other into one place, and it is copied on
    Bytes x(size), there(size);
    const bool ok = fetch(x.data(), a, one) == cudaSuccess && fetch(x.data(), b, two) == cudaSuccess;
    copy(there, x.data(), three);
    three.drain();
    kesco_fetched();
    std::printf("pageable twice %s\n", word(ok && x == b && there == b));
  }
  {  // into what is still being read
    Bytes source = drawn(40 * unit, 8), there(source.size());
    const Bytes first = source;
    three.eager = true;
    kesco_send(there.data(), source.data(), source.size(), cudaMemcpyHostToDevice, &three);
    fetch(source.data() + 20 * unit, a, two);
    kesco_fetched();
    kesco_sent();
    three.drain();
    const bool came = std::equal(a.begin(), a.end(), source.begin() + 20 * unit);
    std::printf("pageable source %s\n", word(there == first && came));
  }
  {  // it fails, when the stream has been given some pieces, and then it works
    const Bytes first = drawn(30 * unit, 9);
    Bytes x(first.size()), y(first.size());
    fails_after = 20;
    const int failed = fetch(x.data(), first, one);
    fails_after = -1;
    const bool begun = std::equal(first.begin(), first.begin() + 20 * unit, x.begin());
    const bool ok = fetch(y.data(), first, one) == cudaSuccess && kesco_fetched() == cudaSuccess;
    std::printf("pageable failed %d %s\n", failed, word(begun && ok && y == first));
  }
  {  // an error that another call is told is told again
    char* x = page_locked(size);
    Bytes there(size);
    fails_after = 0;
    const int refused = fetch(x, a, one);
    fails_after = -1;
    fetch(x, a, one);
    breaks = 719;
    const int onward = copy(there, x, two);
    breaks = 0;
    const int again = fetch(x + 1, b, two), waited = kesco_fetched(), then = kesco_fetched();
    std::printf("failed %d %d %d %d %d\n", refused, onward, again, waited, then);
  }
  {
    int wrong[3] = {};
    Stream owned[3];
    char* places[3] = {page_locked(size), page_locked(size), page_locked(size)};
    std::vector<std::thread> callers;
    for (int t = 0; t < 3; ++t)
      callers.emplace_back([&, t] {
        for (int round = 0; round < 5; ++round) {
          const Bytes from = drawn(size, 3 * round + t);
          fetch(places[t], from, owned[t]);
          kesco_fetched();
          wrong[t] += !same(places[t], from);
        }
      });
    for (std::thread& each : callers) each.join();
    std::printf("threads %s\n", word(wrong[0] + wrong[1] + wrong[2] == 0));
  }
  refuses = 801;  // the driver does not wait for values: at once
  context = 8;
  Bytes x(size);
  const bool ok = fetch(x.data(), a, three) == cudaSuccess;
  std::printf("refused %s\n", word(ok && x == a));
  refuses = 0;
  context = 9;
  Stream dead;  // the device fails and does nothing more
  const Bytes z = drawn(41 * unit, 3);
  Bytes y(z.size());
  fetch(y.data(), z, dead);
  state = breaks = 719;
  std::printf("dead %d\n", static_cast<int>(kesco_fetched()));
  state = breaks = 0;
}
"""
LINES = [
    *("later 0 right", "one stream 2 right", "twice right", "copy right", "onward right", "onward right", "apart 0"),
    *("at once right", "source right", "source right", "pageable 0 right", "pageable 0 right"),
    *("pageable twice right", "pageable source right", "pageable failed 719 right"),
    *("failed 719 719 719 719 0", "threads right", "refused right", "dead 719"),
]
# What stands in the text, and instead of it in the mutant; `%` stands for whether the program is that one.
MUTANTS = (
    ("= cudaEventSynchronize(one.done)", "= % ? cudaSuccess : cudaEventSynchronize(one.done)"),
    ("if (written(to, bytes)) finish();", "if (!% && written(to, bytes)) finish();"),  # two copies into one place
    ("if (written(memory, bytes)) finish();", "if (!% && written(memory, bytes)) finish();"),  # another one uses it
    ("apart(from, bytes)", "apart(from, % ? 0 : bytes)"),  # one that is read in the background
    ("return one.begin < begin + bytes", "return % ? true : one.begin < begin + bytes"),  # waits for what is elsewhere
    ("if (KescoSender::reads(to, bytes))", "if (!% && KescoSender::reads(to, bytes))"),
    ("pinned = reach == KescoReach::both", "pinned = % || reach == KescoReach::both"),
    ("const bool threads = reach == KescoReach::host", "const bool threads = (% || reach == KescoReach::host)"),
    ("each.second.wait();\n    for (const Copy", "if (!%) each.second.wait();\n    for (const Copy"),
    ("each.second.wait();  // for", "if (!%) each.second.wait();  // for"),
    ("slot * sizeof(Flag), ready(number, !up), 0)", "slot * sizeof(Flag), % ? 0 : ready(number, !up), 0)"),
    ("!reached(flags->devices[slot], ready(number, up))", "!% && !reached(flags->devices[slot], ready(number, up))"),
    ("if (state != cudaSuccess && state != cudaErrorNotReady) give_up();", "if (!% && state != 0) give_up();"),
    ("!all && bytes >= KescoFetches::least", "(% || !all) && bytes >= KescoFetches::least"),
    ("if (failed == cudaSuccess) failed = error;", "if (!% && failed == cudaSuccess) failed = error;"),
    ("if (failed != cudaSuccess) return failed;", "if (!% && failed != cudaSuccess) return failed;"),
    ("finish();\n    return failed;", "finish();\n    return % ? cudaSuccess : failed;"),
    ("failed = cudaSuccess;\n    return error;", "if (!%) failed = cudaSuccess;\n    return error;"),
    ("std::atexit([] { all().wait(); })", "std::atexit([] { if (!%) all().wait(); })"),
)


def test_what_is_fetched_is_there(tmp_path: Path) -> None:
    program = built(tmp_path, DRIVER, SMALL, parts=FETCHES)
    assert said(program) == LINES
    done = subprocess.run([program, "fail"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (3, "exit right\n")


@pytest.mark.thorough
def test_threads_wait_for_each_other(tmp_path: Path) -> None:
    program = built(tmp_path, DRIVER, SMALL, "-fsanitize=thread", parts=FETCHES)
    if "unexpected memory mapping" in subprocess.run([program], capture_output=True, text=True).stderr:
        pytest.skip("ThreadSanitizer does not run on this kernel")
    assert said(program) == LINES


@pytest.mark.thorough
def test_each_wait_is_needed(tmp_path: Path) -> None:
    """All mutants are in one program, which is told which of them it is."""
    changes = [(old, new.replace("%", f"(mutant() == {number})")) for number, (old, new) in enumerate(MUTANTS)]
    text = 'inline int mutant() { static const int one = std::atoi(std::getenv("MUTANT")); return one; }\n'
    program = built(tmp_path, DRIVER, [*SMALL, *changes, (HEAD, HEAD + text)], parts=FETCHES)
    assert said(program, MUTANT="-1") == LINES
    for number, change in enumerate(MUTANTS):
        told = {"MUTANT": str(number)}
        try:
            done = subprocess.run([program], capture_output=True, text=True, timeout=10, env=told)
            last = subprocess.run([program, "fail"], capture_output=True, text=True, timeout=10, env=told)
        except subprocess.TimeoutExpired:
            continue
        assert done.stdout.splitlines() != LINES or done.returncode or last.stdout != "exit right\n", change
