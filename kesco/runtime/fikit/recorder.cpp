#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fikit {

Recorder::~Recorder() {
    if (file_)
        fclose(file_);
}

std::string Recorder::open(const std::string &path, std::uint64_t most) {
    most_ = most;
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    struct stat found {};
    if (fd < 0 || fstat(fd, &found) != 0)
        return path + ": " + strerror(errno);
    // What another daemon writes is not emptied.
    if (S_ISREG(found.st_mode) && (flock(fd, LOCK_EX | LOCK_NB) != 0 || ftruncate(fd, 0) != 0)) {
        const std::string why = path + ": " + (errno == EWOULDBLOCK ? "another daemon writes it" : strerror(errno));
        close(fd);
        return why;
    }
    file_ = fdopen(fd, "w");
    line("kesco-fikit-events 1\n");
    return "";
}

template <typename... Values> void Recorder::line(const char *form, Values... values) {
    if (!file_ || full_)
        return;
    char text[512]; // a name is no longer than kName
    const int size = snprintf(text, sizeof text, form, values...);
    full_ = written_ + std::uint64_t(size) > most_;
    if (full_)
        fputs("kesco-fikitd: the record is full: nothing more is written to it\n", stderr);
    else
        written_ += fwrite(text, 1, std::size_t(size), file_);
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
