"""What ``kesco_send`` and ``kesco_sent`` do as they run: the prologue, compiled for the host alone, on a late runtime.

The wait of a stream for a flag, and the flag that it writes, are work of the stream like any other. Pieces are made
small, so that a few bytes go round the four places many times.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from unit.late_runtime import built, said

from kesco.emit.prologue import Parts

SENDS = Parts(copies=True, sends=True)
HEAD = "inline void dawdle() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }\n"
SMALL = [
    ("piece = std::size_t{1} << 23, part = std::size_t{1} << 20", "piece = 1 << 13, part = 1 << 10"),
    ("namespace {\n", HEAD + "namespace {\n"),
    ("bytes < least || ", "bytes < 8 || "),  # of the ring, which is not asked
    ("std::memcpy(up ? place", "if (begin > 0) dawdle();\n      std::memcpy(up ? place"),
]
DRIVER = r"""
constexpr std::size_t unit = 1 << 13;
std::vector<char> drawn(std::size_t size, int salt) {
  std::vector<char> made(size);
  for (std::size_t i = 0; i < size; ++i) made[i] = static_cast<char>((i + salt) * 0x9e3779b97f4a7c15u >> 56);
  return made;
}
cudaError_t send(std::vector<char>& to, const std::vector<char>& from, Stream& stream) {
  return kesco_send(to.data(), from.data(), from.size(), cudaMemcpyHostToDevice, &stream);
}
void wiped(std::vector<char>& one) { std::fill(one.begin(), one.end(), 'x'); }
const char* word(bool right) { return right ? "right" : "WRONG"; }

struct Last {  // goes behind all that was registered after it
  std::vector<char> device, source, kept;
  Stream* stream = nullptr;
  ~Last() {
    if (stream == nullptr) return;
    wiped(source);
    stream->drain();
    std::printf("exit %s\n", word(device == kept));
  }
};

int main(int argc, char**) {
  static Last last;
  Stream one, two, late, legacy;
  one.eager = two.eager = true;
  streams = {&one, &two, &late};
  if (argc > 1) {  // fails while a copy is under way
    static Stream own;
    own.eager = true;
    last.kept = last.source = drawn(90 * unit, 1);
    last.device.resize(90 * unit);
    last.stream = &own;
    send(last.device, last.source, own);
    std::exit(3);
  }
  for (std::size_t size : {unit - 1, unit, 3 * unit + 5, 41 * unit + 1}) {
    std::vector<char> a = drawn(size, 1), b = drawn(size, 2), there(size), other(size);
    const std::vector<char> first = a, second = b;
    bool ok = send(there, a, one) == cudaSuccess && send(other, b, two) == cudaSuccess;
    kesco_sent();
    wiped(a);
    wiped(b);
    one.drain();
    two.drain();
    std::printf("%zu %s\n", size, word(ok && there == first && other == second));
  }
  {  // four pieces, all of which have a place: nothing else has to move
    std::vector<char> a = drawn(2 * unit, 3), b = drawn(2 * unit, 4), there(a.size()), other(a.size());
    const std::vector<char> first = a, second = b;
    const bool ok = send(there, a, late) == cudaSuccess && send(other, b, late) == cudaSuccess;
    const bool waited = late.done > 0;
    kesco_sent();
    wiped(a);
    wiped(b);
    const bool moved = late.done > 0;
    late.drain();
    std::printf("late %s %d %d\n", word(ok && there == first && other == second), waited, moved);
  }
  on_default = &legacy;
  for (Stream* before : {&late, &legacy}) {  // what is pending may write the source
    std::vector<char> a(2 * unit, 'x'), there(a.size());
    before->push([&] { std::fill(a.begin(), a.end(), 'y'); });
    const bool ok = send(there, a, late) == cudaSuccess;
    kesco_sent();
    late.drain();
    std::printf("pending %s\n", word(ok && there == std::vector<char>(a.size(), 'y')));
  }
  on_default = nullptr;
  // More pieces than there are places, and a stream that comes to them late. Then the host writes the source, or a copy
  // to the host does.
  for (const char* way : {"written", "back"}) {
    std::vector<char> a = drawn(6 * unit, 5), there(a.size()), result(a.size(), 'r');
    const std::vector<char> first = a;
    bool ok = send(there, a, late) == cudaSuccess;
    std::thread drains([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      late.drain();
    });
    if (*way == 'w') kesco_sent();
    if (*way == 'w') wiped(a);
    else ok = ok && kesco_copy(a.data(), result.data(), a.size(), cudaMemcpyDeviceToHost, &two) == cudaSuccess;
    drains.join();
    std::printf("%s %s\n", way, word(ok && there == first && (*way == 'w' || a == result)));
  }
  {  // a copy fails, some of which the stream has been given
    std::vector<char> a = drawn(50 * unit, 6), there(a.size());
    fails_after = 20;
    const cudaError_t failed = send(there, a, one);
    fails_after = -1;
    std::vector<char> b = drawn(50 * unit, 7), other(b.size());
    const bool ok = send(other, b, one) == cudaSuccess;
    kesco_sent();
    one.drain();
    const bool begun = std::equal(a.begin(), a.begin() + 20 * unit, there.begin());
    std::printf("failed %d %s\n", failed, word(ok && other == b && begun));
  }
  {
    int wrong[3] = {};
    Stream owned[3];
    std::vector<std::thread> callers;
    for (int t = 0; t < 3; ++t)
      callers.emplace_back([&, t] {
        owned[t].eager = true;
        for (int round = 0; round < 3; ++round) {
          std::vector<char> a = drawn(20 * unit, t + round), there(a.size());
          const std::vector<char> first = a;
          send(there, a, owned[t]);
          kesco_sent();
          wiped(a);
          owned[t].drain();
          wrong[t] += there != first;
        }
      });
    for (std::thread& each : callers) each.join();
    std::printf("threads %s\n", word(wrong[0] + wrong[1] + wrong[2] == 0));
  }
  refuses = 801;  // not supported: as kesco_copy does it
  context = 8;
  for (int again = 0; again < 2; ++again) {
    std::vector<char> a = drawn(9 * unit, 8), there(a.size());
    const std::vector<char> first = a;
    const bool ok = send(there, a, late) == cudaSuccess;
    wiped(a);
    late.drain();
    std::printf("refused %s\n", word(ok && there == first));
  }
  refuses = 0;
  context = 9;
  std::vector<char> a = drawn(9 * unit, 9), there(a.size());
  Stream dead;
  send(there, a, dead);
  state = 719;  // the device fails and does nothing more
  kesco_sent();
  std::printf("dead\n");
  state = 0;
}
"""
LINES = [
    *(f"{size} right" for size in (8191, 8192, 24581, 335873)),
    *(
        "late right 0 0",
        "pending right",
        "pending right",
        "written right",
        "back right",
        "failed 719 right",
        "threads right",
    ),
    *("refused right", "refused right", "dead"),
]
MUTANTS = (
    ("!reached(flags->devices[slot], ready(number, up))", "false"),  # a place is filled before it is free
    ("(left[slot] -= size) == 0", "(left[slot] -= size) + 1 > 0"),  # a piece is sent before all of it is there
    ("each.second.wait();", ";"),  # the program goes on before its memory has been read
    ("if (!to_device) kesco_sent();", ";"),  # and so does a copy to the host
    ("KescoSender::settled() ? cudaSuccess : kesco_settle(stream)", "cudaSuccess"),  # a source is read too early
    ("KescoSender::settled() = false;", ";"),  # also by a later copy
    ("if (up) add(on_host + done, size)", "if (up) add(on_host, size)"),
    ("flags->devices[number % slots].store(number + 1, std::memory_order_release);", ";"),  # its place is lost
)


def test_what_is_sent_arrives(tmp_path: Path) -> None:
    program = built(tmp_path, DRIVER, SMALL, parts=SENDS)
    assert said(program) == LINES
    done = subprocess.run([program, "fail"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (3, "exit right\n")


def test_threads_wait_for_each_other(tmp_path: Path) -> None:
    program = built(tmp_path, DRIVER, SMALL, "-fsanitize=thread", parts=SENDS)
    if "unexpected memory mapping" in subprocess.run([program], capture_output=True, text=True).stderr:
        pytest.skip("ThreadSanitizer does not run on this kernel")
    assert said(program) == LINES


@pytest.mark.thorough
def test_each_wait_is_needed(tmp_path: Path) -> None:
    """All mutants are in one program, which is told which of them it is."""
    changes = list(SMALL)
    for number, (old, new) in enumerate(MUTANTS):
        statement = new.endswith(";") or new == ";"
        some = f"if (mutant() == {number}) {{ {new} }} else {{ {old} }}"
        changes.append((old, some if statement else f"(mutant() == {number} ? ({new}) : ({old}))"))
    changes[len(SMALL) + 6] = ("add(on_host + done, size)", "add(mutant() == 6 ? on_host : on_host + done, size)")
    text = 'inline int mutant() { static const int one = std::atoi(std::getenv("MUTANT")); return one; }\n'
    program = built(tmp_path, DRIVER, [*changes, (HEAD, HEAD + text)], parts=SENDS)
    assert said(program, MUTANT="-1") == LINES
    for number, change in enumerate(MUTANTS):
        try:
            done = subprocess.run([program], capture_output=True, text=True, timeout=10, env={"MUTANT": str(number)})
        except subprocess.TimeoutExpired:
            continue
        assert done.stdout.splitlines() != LINES or done.returncode, change
