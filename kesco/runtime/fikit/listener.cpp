#include "listener.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace fikit {
namespace {

constexpr int kTries = 200; // of 10 ms: another daemon is just looking

sockaddr_un address_of(const std::string &path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, path.c_str());
    return address;
}

// One that is stopped listens, too: its queue is full at most. Nobody does only where nothing can be connected.
bool somebody_listens(const sockaddr_un &address) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool nobody = fd >= 0 && connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0 &&
                        (errno == ECONNREFUSED || errno == ENOENT);
    if (fd >= 0)
        close(fd);
    return !nobody;
}

bool lock(int folder) {
    for (int tries = 0; tries < kTries; ++tries, usleep(10000)) {
        if (flock(folder, LOCK_EX | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return false;
    }
    return false;
}

} // namespace

Listener::~Listener() {
    if (fd_ < 0)
        return;
    if (there()) // and nobody takes it meanwhile, since this one still listens
        unlink(path_.c_str());
    close(fd_);
}

std::string Listener::open(const std::string &path, mode_t mode) {
    if (path.size() >= sizeof(sockaddr_un::sun_path))
        return "the socket's path is too long: " + path;
    const std::size_t end = path.rfind('/');
    const std::string folder = end == std::string::npos ? "." : end == 0 ? "/" : path.substr(0, end);
    // One at a time looks and takes the name.
    const int held = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool locked = held >= 0 && lock(held);
    const std::string why = locked ? bind_at(path, mode) : folder + ": " + strerror(errno);
    if (held >= 0)
        close(held);
    return why;
}

std::string Listener::bind_at(const std::string &path, mode_t mode) {
    const sockaddr_un address = address_of(path);
    struct stat found {};
    if (lstat(path.c_str(), &found) == 0 && !S_ISSOCK(found.st_mode))
        return path + " is no socket";
    if (somebody_listens(address))
        return "another daemon serves " + path;
    unlink(path.c_str()); // a dead one's
    fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const mode_t before = umask(0777 & ~mode);
    const bool bound = bind(fd_, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0;
    umask(before);
    if (!bound || listen(fd_, 64) != 0 || lstat(path.c_str(), &found) != 0) {
        const std::string why = path + ": " + strerror(errno);
        close(fd_);
        fd_ = -1;
        return why;
    }
    path_ = path, device_ = found.st_dev, number_ = found.st_ino;
    return "";
}

bool Listener::there() const {
    struct stat found {};
    return lstat(path_.c_str(), &found) == 0 && found.st_dev == device_ && found.st_ino == number_;
}

} // namespace fikit
