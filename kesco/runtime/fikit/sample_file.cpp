#include "sample_file.h"

#include "futex.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <new>

namespace fikit {
namespace {

constexpr std::uint64_t kNowAndThen = 50000000; // between writes, in nanoseconds
constexpr std::size_t kMuch = 1 << 16;          // what is not left to lie so long

struct File {
    std::mutex lock;
    std::string path, text; // text: what is not written yet
    bool ends = false;
    std::atomic<std::uint32_t> bell{0}; // a futex: there is much to write, or no more comes
    std::atomic<std::uint32_t> over{1}; // a futex: 1: no thread writes
};
alignas(File) unsigned char room[sizeof(File)];
File &file() {
    static File *const one = new (room) File; // never destroyed
    return *one;
}

bool written(int fd, const std::string &text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t count = write(fd, text.data() + done, text.size() - done);
        if (count > 0)
            done += std::size_t(count);
        else if (count == 0 || errno != EINTR)
            return false; // no room, as a rule
    }
    return true;
}

void *write_all(void *) {
    File &f = file();
    pthread_setname_np(pthread_self(), "kesco-samples");
    int fd = own_descriptors() ? open(f.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    std::string part;
    for (bool ends = false; !ends;) {
        const std::uint32_t heard = f.bell.load();
        {
            const std::lock_guard<std::mutex> guard(f.lock);
            part.swap(f.text);
            ends = f.ends;
        }
        if (fd >= 0 && !written(fd, part)) {
            while (ftruncate(fd, 0) != 0 && errno == EINTR)
                ;
            close(fd);
            fd = -1; // a part of the samples is worse than none
        }
        part.clear();
        if (!ends)
            futex_wait(&f.bell, heard, kNowAndThen);
    }
    if (fd >= 0)
        close(fd);
    f.over.store(1);
    futex_wake(&f.over);
    return nullptr;
}

void rung(File &f) {
    f.bell.fetch_add(1);
    futex_wake(&f.bell);
}

} // namespace

bool begin_samples(const std::string &path) noexcept {
    File &f = file();
    f.path = path;
    f.over.store(0);
    if (start(write_all))
        return true;
    f.over.store(1);
    return false;
}

void write_samples(const char *text) noexcept {
    File &f = file();
    const std::lock_guard<std::mutex> guard(f.lock);
    const bool much = f.text.size() >= kMuch;
    f.text += text;
    if (!much && f.text.size() >= kMuch)
        rung(f);
}

void end_samples() noexcept {
    File &f = file();
    {
        const std::lock_guard<std::mutex> guard(f.lock);
        f.ends = true;
    }
    rung(f);
    while (!f.over.load())
        futex_wait(&f.over, 0, kNowAndThen);
}

void no_samples() noexcept {
    new (&file()) File;
}

} // namespace fikit
