// kesco-fikitd: decides which process launches now. Started by `kesco fikit serve`.
//
//     kesco-fikitd --socket PATH [--shared PATH] [--costs FILE] [--record FILE] [--record-bytes MOST] [--policy NUMBER]
//     [--cap 0..9] [--user UID:0..9]... [--spin-ns TIME] [--SETTING VALUE]...
//
// The listed users come in by the shared socket. A SETTING is a member of KescoPolicySettings, with dashes. Exit codes:
// 0 ended by a signal, 2 usage, 5 cannot serve, or no longer.
#include "clock.h"
#include "server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <charconv>

namespace {

constexpr std::size_t kMostUsers = 127; // so that each has a share of the places

volatile int stop = 0;

void on_signal(int) {
    stop = 1;
}

// A number and nothing else, at most so large; what else it may be is not guessed.
bool number(const char *text, const char *end, std::uint64_t most, std::uint64_t &value) {
    const auto [last, error] = std::from_chars(text, end, value);
    return error == std::errc() && last == end && value <= most;
}
bool number(const char *text, std::uint64_t most, std::uint64_t &value) {
    return number(text, text + strlen(text), most, value);
}

bool user(fikit::ServerSettings &settings, const char *text) {
    std::uint64_t who = 0, priority = 0;
    const char *colon = strchr(text, ':'); // the last number of an uid_t is none
    if (!colon || !number(text, colon, uid_t(-1) - 1, who) || !number(colon + 1, 9, priority))
        return false;
    settings.users[uid_t(who)] = int(priority);
    return settings.users.size() <= kMostUsers;
}

bool setting(KescoPolicySettings &p, const char *name, const char *text) {
    const struct {
        const char *name;
        std::uint64_t *wide;
        std::uint32_t *narrow;
    } all[] = {
        {"threshold-ns", &p.threshold_ns, nullptr},
        {"guard-ns", &p.guard_ns, nullptr},
        {"inflight-ns", &p.inflight_ns, nullptr},
        {"inflight-launches", nullptr, &p.inflight_launches},
        {"switch-ns", &p.switch_ns, nullptr},
        {"time-percent", nullptr, &p.time_percent},
        {"gap-percent", nullptr, &p.gap_percent},
        {"drift-limit", nullptr, &p.drift_limit},
        {"unknown-ns", &p.unknown_ns, nullptr},
        {"away-ns", &p.away_ns, nullptr},
        {"react-ns", &p.react_ns, nullptr},
        {"quantum-ns", &p.quantum_ns, nullptr},
        {"deadline-ns", &p.deadline_ns, nullptr},
        {"age-ns", &p.age_ns, nullptr},
        {"harm-permille", &p.harm_permille, nullptr},
        {"credit-ns", &p.credit_ns, nullptr},
        {"react-permille", &p.react_permille, nullptr},
        {"beside-permille", &p.beside_permille, nullptr},
    };
    std::uint64_t value = 0;
    for (const auto &one : all)
        if (strcmp(one.name, name) == 0) {
            if (!number(text, one.wide ? UINT64_MAX : UINT32_MAX, value))
                return false;
            if (one.wide)
                *one.wide = value;
            else
                *one.narrow = std::uint32_t(value);
            return true;
        }
    return false;
}

// One option; whether it makes sense.
bool option(fikit::ServerSettings &settings, const char *name, const char *value) {
    const struct {
        const char *name;
        std::string *text;
    } texts[] = {{"socket", &settings.socket},
                 {"shared", &settings.shared},
                 {"costs", &settings.costs},
                 {"record", &settings.record}};
    for (const auto &one : texts)
        if (strcmp(name, one.name) == 0) {
            *one.text = value;
            return true;
        }
    std::uint64_t found = 0;
    if (strcmp(name, "cap") == 0) {
        const bool good = number(value, 9, found);
        settings.priority_cap = int(found);
        return good;
    }
    if (strcmp(name, "spin-ns") == 0)
        return number(value, UINT64_MAX, settings.spin);
    if (strcmp(name, "record-bytes") == 0)
        return number(value, UINT64_MAX, settings.record_bytes);
    if (strcmp(name, "user") == 0)
        return user(settings, value);
    return strcmp(name, "policy") == 0 || setting(settings.policy, name, value);
}

int usage(const std::string &what) {
    fprintf(stderr, "kesco-fikitd: %s\n", what.c_str());
    return 2;
}

} // namespace

int main(int count, char **words) {
    fikit::ServerSettings settings;
    std::uint64_t kind = KESCO_QUANTILE;
    for (int i = 1; i + 1 < count; i += 2) // first, since it sets all the others
        if (strcmp(words[i], "--policy") == 0 && !number(words[i + 1], KESCO_KINDS - 1, kind))
            return usage(std::string("--policy ") + words[i + 1]);
    kesco_policy_defaults(&settings.policy, std::uint32_t(kind));
    for (int i = 1; i < count; i += 2)
        if (i + 1 == count || strncmp(words[i], "--", 2) != 0 || !option(settings, words[i] + 2, words[i + 1]))
            return usage(std::string(words[i]) + (i + 1 < count ? std::string(" ") + words[i + 1] : ""));
    if (settings.socket.empty())
        return usage("--socket is missing");
    struct sigaction action {};
    action.sa_handler = on_signal;
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);
    signal(SIGPIPE, SIG_IGN);
    fikit::common_clock();
    fikit::Server server(settings);
    if (const std::string why = server.open(); !why.empty()) {
        fprintf(stderr, "kesco-fikitd: %s\n", why.c_str());
        return 5;
    }
    puts("ready");
    fflush(stdout);
    const std::string why = server.serve(&stop);
    if (!why.empty())
        fprintf(stderr, "kesco-fikitd: %s\n", why.c_str());
    return why.empty() ? 0 : 5;
}
