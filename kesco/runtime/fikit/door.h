// Who connects, until it is a client: it is asked who it is before anything else, and it gets a little time and a share
// of the places. So nobody who only connects, or says half of a Hello, or reads slowly, is in anybody's way.
//
// 1. Other users than the daemon's own and the listed ones are refused as they come; nothing is read of them.
// 2. Each user has so many connections here; one more takes the place of its oldest one, of one that reads last.
// 3. A Hello is put together of what comes; what is told is written as the reader takes it.
// 4. Who is not done in its time is dropped.
#pragma once

#include "listener.h"
#include "protocol.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace fikit {

struct Stranger {
    uid_t user = 0;
    pid_t pid = 0;
    int cap = 0;             // its highest priority
    std::uint64_t since = 0; // it came, or has read
    std::size_t got = 0;     // of the Hello
    Hello hello{};
    std::shared_ptr<const std::string> told; // null: nothing yet
    std::size_t taken = 0;                   // of it
};

class Door {
  public:
    Door(int cap, std::map<uid_t, int> users) : cap_(cap), users_(std::move(users)) {}
    ~Door();
    Door(const Door &) = delete;
    Door &operator=(const Door &) = delete;
    // `shared` is for the listed users; what is wrong, or an empty text.
    std::string open(int poll, const std::string &own, const std::string &shared);
    bool listens(int fd) const { return fd == own_.fd() || fd == shared_.fd(); }
    bool there() const { return own_.there() && (shared_.fd() < 0 || shared_.there()); }
    bool has(int fd) const { return strangers_.count(fd) != 0; }
    // How many of all places one other user may have: always enough are left for everyone.
    std::size_t share(std::size_t all) const;

    void greet(int listening, std::uint64_t now);
    // Who has just said a whole Hello, or null.
    const Stranger *hear(int fd);
    void refuse(int fd, Refusal why);
    void tell(int fd, std::shared_ptr<const std::string> text, std::uint64_t now);
    // It is a client now, and its connection the caller's.
    void let_in(int fd) { strangers_.erase(fd); }
    void end_late(std::uint64_t now);

  private:
    const int cap_;
    const std::map<uid_t, int> users_;
    int poll_ = -1;
    Listener own_, shared_;
    std::map<int, Stranger> strangers_; // by descriptor

    bool knows(int fd, Stranger &one) const;
    void make_room(uid_t user);
    void drop(int fd);
    void write(int fd, Stranger &one);
};

// Tells `poll` of what happens there; `events` as for epoll_ctl.
void watch(int poll, int fd, std::uint32_t events);

} // namespace fikit
