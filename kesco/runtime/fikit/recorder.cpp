#include "recorder.h"

#include <inttypes.h>

namespace fikit {
namespace {

constexpr std::uint64_t kMost = 20000000; // lines: less than a gigabyte, then no more

} // namespace

Recorder::~Recorder() {
    if (file_)
        fclose(file_);
}

bool Recorder::open(const std::string &path) {
    file_ = fopen(path.c_str(), "we");
    if (file_)
        fputs("kesco-fikit-events 1\n", file_);
    return file_ != nullptr;
}

template <typename... Values> void Recorder::line(const char *form, Values... values) {
    if (file_ && lines_++ < kMost)
        fprintf(file_, form, values...);
}

void Recorder::came(std::uint64_t time, std::uint32_t task, int priority, long pid, const std::string &name) {
    line("T %" PRIu64 " %u %d %ld %s\n", time, task, priority, pid, name.c_str());
}
void Recorder::named(std::uint32_t task, std::uint64_t identity, const std::string &name) {
    line("K %u %016" PRIx64 " %s\n", task, identity, name.c_str());
}
void Recorder::passed(std::uint64_t time, std::uint32_t task, std::uint64_t identity) {
    line("P %" PRIu64 " %u %016" PRIx64 "\n", time, task, identity);
}
void Recorder::credited(std::uint64_t time, std::uint32_t task, std::uint64_t identity) {
    line("C %" PRIu64 " %u %016" PRIx64 "\n", time, task, identity);
}
void Recorder::waits(std::uint64_t time, std::uint32_t task, std::uint64_t ticket, std::uint64_t identity) {
    line("W %" PRIu64 " %u %" PRIu64 " %016" PRIx64 "\n", time, task, ticket, identity);
}
void Recorder::granted(std::uint64_t time, const KescoGrant &grant, std::uint32_t held) {
    line("G %" PRIu64 " %u %" PRIu64 " %u %u %" PRIu64 " %" PRIu64 "\n", time, grant.task, grant.ticket, grant.reason,
         held, grant.predicted_ns, grant.gap_left_ns);
}
void Recorder::began(std::uint64_t time, std::uint32_t task, std::uint64_t ticket) {
    line("B %" PRIu64 " %u %" PRIu64 "\n", time, task, ticket);
}
void Recorder::abandoned(std::uint64_t time, std::uint32_t task, std::uint64_t ticket) {
    line("A %" PRIu64 " %u %" PRIu64 "\n", time, task, ticket);
}
void Recorder::done(std::uint64_t time, std::uint32_t task, std::uint64_t launches) {
    line("D %" PRIu64 " %u %" PRIu64 "\n", time, task, launches);
}
void Recorder::left(std::uint64_t time, std::uint32_t task) {
    line("L %" PRIu64 " %u\n", time, task);
}

} // namespace fikit
