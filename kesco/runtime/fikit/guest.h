// One client as the daemon sees it. Nothing that the client writes is trusted: see shared_memory.h.
#pragma once

#include "policy.h"
#include "protocol.h"
#include "recorder.h"

#include <sys/types.h>

#include <map>
#include <string>

namespace fikit {

struct Guest {
    int socket = -1;
    std::uint32_t task = 0; // its number in the policy
    pid_t pid = 0;          // for people only: a client is its connection, so a pid that is used again means nothing
    uid_t user = 0;
    int priority = 0;
    std::string key, name;
    Shared *words = nullptr;
    std::uint64_t since = 0;

    std::uint64_t tail = 0;     // records read
    std::uint64_t lost = 0;     // records that were overwritten before they were read
    std::uint64_t stuck_at = 0; // when the record at `tail` was first found half written
    std::uint64_t names_tail = 0;
    std::uint64_t waiting = 0; // the ticket that waits; 0: none
    std::uint64_t waiting_identity = 0;
    std::uint64_t completed = 0;
    std::map<std::uint64_t, std::string> names;
    KescoGrant last{};      // the last grant, for explain
    KescoCredit credit{};   // as it was published
    std::uint32_t held = 0; // KescoHeldReason as of the last decision in which it still waited

    Guest() = default;
    Guest(const Guest &) = delete;
    Guest &operator=(const Guest &) = delete;
    ~Guest();
};

// Makes the sealed memory of a client and maps it; returns its descriptor, or -1.
int make_words(Guest &guest);
// Tells in a client's table what a kernel of its is taken for.
void predict(Predicted *table, std::uint64_t identity, std::uint64_t time);
// Tells the client what it may launch without asking.
void publish_credit(Guest &guest, const KescoPolicy *policy);
// Tells the policy what the client has written; returns whether there was anything.
bool listen(Guest &guest, KescoPolicy *policy, Recorder &recorder, std::uint64_t now);
// Text that is safe to show: printable, in a JSON string.
std::string shown(const char *text, std::size_t most);

} // namespace fikit
