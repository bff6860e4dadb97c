// The daemon: one for each GPU and user. It holds no GPU memory and makes no call of CUDA.
#pragma once

#include "costs_file.h"
#include "guest.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fikit {

struct ServerSettings {
    std::string socket;
    std::string costs;  // the profile as text; empty: none
    std::string record; // where events go, for a trace; empty: nowhere
    int priority_cap = 9;
    std::map<uid_t, int> users; // others than the daemon's own, each with the highest priority that it may have
    std::uint64_t spin = 50000; // how long it looks without sleeping after something happened, in nanoseconds
    KescoPolicySettings policy{};
};

class Server {
  public:
    explicit Server(ServerSettings settings);
    ~Server();
    Server(const Server &) = delete;
    Server &operator=(const Server &) = delete;
    // Binds the socket; what is wrong, or an empty text.
    std::string open();
    // Serves until a signal ends it.
    void serve(const volatile int *stop);

  private:
    ServerSettings settings_;
    KescoPolicy *policy_ = nullptr;
    Recorder recorder_;
    std::map<std::string, kesco::fikit::TaskCosts> costs_;
    int listening_ = -1, poll_ = -1, lock_ = -1;
    std::vector<std::unique_ptr<Guest>> guests_; // by task number; null: free
    std::map<int, std::uint64_t> strangers_;     // connected, nothing said yet; since when
    int present_ = 0;
    std::uint64_t wake_ = 0;

    void greet(std::uint64_t now);
    void hear(int fd, std::uint64_t now);
    void answer(int fd, const Hello &hello, std::uint64_t now);
    Refusal admit(int fd, const Hello &hello, std::uint64_t now, std::unique_ptr<Guest> &guest, int &memory);
    void refuse(int fd, Refusal why);
    void leave(Guest &guest, std::uint64_t now);
    void drop(int fd);
    bool look(std::uint64_t now);
    bool decide(std::uint64_t now);
    void publish(std::uint64_t now);
    Track track(const Guest &guest, int holder) const;
    bool waiting() const;
    void sleep_until_asked(std::uint64_t now);
    void events(int milliseconds, std::uint64_t now);
    std::string status(std::uint64_t now) const;
};

} // namespace fikit
