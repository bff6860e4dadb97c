// What the daemon says of itself, as JSON: for top, explain and metrics.
#include "server.h"

#include <inttypes.h>
#include <stdio.h>

namespace fikit {
namespace {

void add(std::string &text, const char *name, std::uint64_t value) {
    char part[96];
    snprintf(part, sizeof part, ",\"%s\":%" PRIu64, name, value);
    text += part;
}

std::string name_of(const Guest &guest, std::uint64_t identity) {
    const auto found = guest.names.find(identity);
    return found == guest.names.end() ? "" : found->second;
}

} // namespace

std::string Server::status(std::uint64_t now) const {
    std::string text = "{\"version\":1,\"tasks\":[";
    bool first = true;
    for (const auto &guest : guests_) {
        if (!guest)
            continue;
        const KescoTaskState *state = kesco_policy_task(policy_, guest->task);
        if (!state)
            continue;
        text += first ? "{" : ",{";
        first = false;
        text += "\"name\":\"" + guest->name + "\",\"task\":\"" + guest->key + "\"";
        add(text, "pid", std::uint64_t(guest->pid));
        add(text, "user", guest->user);
        add(text, "priority", std::uint64_t(guest->priority));
        add(text, "number", guest->task);
        add(text, "uptime_ns", now - guest->since);
        add(text, "waiting", state->waiting);
        add(text, "held_reason", state->held_reason);
        add(text, "launched", state->launched);
        add(text, "done", state->done);
        add(text, "passed", state->passed);
        add(text, "holds", state->holds);
        add(text, "abandoned", state->abandoned);
        add(text, "waited_ns", state->waited_ns);
        add(text, "longest_ns", state->longest_ns);
        add(text, "filled_ns", state->filled_ns);
        add(text, "overruns", state->overruns);
        add(text, "gaps", state->gaps);
        add(text, "gap_ns", state->gap_ns);
        add(text, "wide_gaps", state->wide_gaps);
        add(text, "wide_ns", state->wide_ns);
        add(text, "promises", state->promises);
        add(text, "broken", state->broken);
        add(text, "harms", state->harms);
        add(text, "harm_ns", state->harm_ns);
        add(text, "drifted", state->drifted);
        add(text, "unknown", state->unknown);
        add(text, "credited", state->credited);
        add(text, "fillable_ns", state->fillable_ns);
        add(text, "busy_ns", state->busy_ns);
        add(text, "beside", state->beside);
        add(text, "trials", state->trials);
        add(text, "beside_ns", state->beside_ns);
        add(text, "slow_permille", state->slow_permille);
        add(text, "lost_records", guest->lost);
        text += ",\"grants\":[";
        for (int i = 0; i < KESCO_GRANT_REASONS; ++i)
            text += (i ? "," : "") + std::to_string(state->grants[i]);
        text += "],\"waits_for\":\"" + (guest->waiting ? name_of(*guest, guest->waiting_identity) : "") + "\"";
        text += ",\"last_grant\":{\"kernel\":\"" + name_of(*guest, guest->last.identity) + "\"";
        add(text, "reason", guest->last.reason);
        add(text, "predicted_ns", guest->last.predicted_ns);
        add(text, "gap_left_ns", guest->last.gap_left_ns);
        text += "}}";
    }
    text += "],\"holder\":" + std::to_string(kesco_policy_holder(policy_)) + "}\n";
    return text;
}

} // namespace fikit
