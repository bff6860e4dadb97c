// The daemon: one for each GPU and user. It holds no GPU memory and makes no call of CUDA.
#pragma once

#include "door.h"
#include "guest.h"
#include "profiles.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fikit {

struct ServerSettings {
    std::string socket;
    std::string shared; // another one, for the users below; empty: none
    std::string costs;  // the profile as text; empty: none
    std::string record; // where events go, for a trace; empty: nowhere
    std::uint64_t record_bytes = 1000000000;
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
    // Binds the sockets; what is wrong, or an empty text.
    std::string open();
    // Serves until a signal ends it, or its name is no longer its own; what was wrong, or an empty text.
    std::string serve(const volatile int *stop);

  private:
    ServerSettings settings_;
    KescoPolicy *policy_ = nullptr;
    Recorder recorder_;
    Profiles profiles_;
    Door door_;
    int poll_ = -1;
    std::vector<std::unique_ptr<Guest>> guests_; // by task number; null: free
    int present_ = 0;
    std::uint64_t wake_ = 0;
    std::shared_ptr<const std::string> told_; // the last status, and when it was that
    std::uint64_t told_at_ = 0;

    void hear(int fd, std::uint64_t now);
    void answer(int fd, const Stranger &who, std::uint64_t now);
    Refusal admit(const Stranger &who, std::uint64_t now, std::unique_ptr<Guest> &guest, int &memory);
    void leave(Guest &guest, std::uint64_t now);
    bool look(std::uint64_t now);
    bool decide(std::uint64_t now);
    void publish();
    Track track(const Guest &guest, int holder) const;
    bool waiting() const;
    void sleep_until_asked(std::uint64_t now);
    void events(int milliseconds, std::uint64_t now);
    std::string status(std::uint64_t now) const;
};

} // namespace fikit
