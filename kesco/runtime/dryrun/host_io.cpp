// Calls of the operating system with watched memory: on protected pages they would fail instead of faulting, so the
// program's calls come here first.
#include "memory.h"

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>

namespace {

template <typename Function> Function real(const char *name) { // the one behind ours
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

} // namespace

extern "C" {

ssize_t read(int file, void *to, size_t size) {
    static const auto next = real<ssize_t (*)(int, void *, size_t)>("read");
    dryrun::host_touches(to, size, true);
    return next(file, to, size);
}
ssize_t pread(int file, void *to, size_t size, off_t offset) {
    static const auto next = real<ssize_t (*)(int, void *, size_t, off_t)>("pread");
    dryrun::host_touches(to, size, true);
    return next(file, to, size, offset);
}
ssize_t write(int file, const void *from, size_t size) {
    static const auto next = real<ssize_t (*)(int, const void *, size_t)>("write");
    dryrun::host_touches(from, size, false);
    return next(file, from, size);
}
ssize_t pwrite(int file, const void *from, size_t size, off_t offset) {
    static const auto next = real<ssize_t (*)(int, const void *, size_t, off_t)>("pwrite");
    dryrun::host_touches(from, size, false);
    return next(file, from, size, offset);
}
ssize_t readv(int file, const iovec *parts, int count) {
    static const auto next = real<ssize_t (*)(int, const iovec *, int)>("readv");
    for (int i = 0; i < count; ++i)
        dryrun::host_touches(parts[i].iov_base, parts[i].iov_len, true);
    return next(file, parts, count);
}
ssize_t writev(int file, const iovec *parts, int count) {
    static const auto next = real<ssize_t (*)(int, const iovec *, int)>("writev");
    for (int i = 0; i < count; ++i)
        dryrun::host_touches(parts[i].iov_base, parts[i].iov_len, false);
    return next(file, parts, count);
}
ssize_t recv(int file, void *to, size_t size, int flags) {
    static const auto next = real<ssize_t (*)(int, void *, size_t, int)>("recv");
    dryrun::host_touches(to, size, true);
    return next(file, to, size, flags);
}
ssize_t send(int file, const void *from, size_t size, int flags) {
    static const auto next = real<ssize_t (*)(int, const void *, size_t, int)>("send");
    dryrun::host_touches(from, size, false);
    return next(file, from, size, flags);
}
size_t fread(void *to, size_t size, size_t count, FILE *file) {
    static const auto next = real<size_t (*)(void *, size_t, size_t, FILE *)>("fread");
    dryrun::host_touches(to, size * count, true);
    return next(to, size, count, file);
}
size_t fwrite(const void *from, size_t size, size_t count, FILE *file) {
    static const auto next = real<size_t (*)(const void *, size_t, size_t, FILE *)>("fwrite");
    dryrun::host_touches(from, size * count, false);
    return next(from, size, count, file);
}

} // extern "C"
