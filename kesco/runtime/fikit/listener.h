// A name in a folder at which one daemon is reached. That it is one is decided by who listens there, which nobody else
// can end or pretend; a file of locks could be removed.
#pragma once

#include <sys/types.h>

#include <string>

namespace fikit {

class Listener {
  public:
    Listener() = default;
    ~Listener(); // takes the name away, if it is still its own
    Listener(const Listener &) = delete;
    Listener &operator=(const Listener &) = delete;
    // What is wrong, or an empty text; `mode` says who may connect.
    std::string open(const std::string &path, mode_t mode);
    int fd() const { return fd_; }
    // Whether who connects at this name comes here.
    bool there() const;

  private:
    std::string bind_at(const std::string &path, mode_t mode);
    std::string path_;
    int fd_ = -1;
    dev_t device_ = 0;
    ino_t number_ = 0;
};

} // namespace fikit
