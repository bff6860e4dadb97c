// kesco-fikitd: decides which process launches now. Started by `kesco fikit serve`.
//
//     kesco-fikitd --socket PATH [--costs FILE] [--record FILE] [--policy NUMBER] [--cap 0..9] [--user UID:0..9]...
//     [--SETTING VALUE]...
//
// A SETTING is a member of KescoPolicySettings, with dashes. Exit codes: 0 ended by a signal, 2 usage, 5 cannot serve.
#include "clock.h"
#include "server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace {

volatile int stop = 0;

void on_signal(int) {
    stop = 1;
}

bool setting(KescoPolicySettings &p, const char *name, std::uint64_t value) {
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
    };
    for (const auto &one : all)
        if (strcmp(one.name, name) == 0) {
            if (one.wide)
                *one.wide = value;
            else
                *one.narrow = std::uint32_t(value);
            return true;
        }
    return false;
}

int usage(const char *what) {
    fprintf(stderr, "kesco-fikitd: %s\n", what);
    return 2;
}

} // namespace

int main(int count, char **words) {
    fikit::ServerSettings settings;
    kesco_policy_defaults(&settings.policy, KESCO_QUANTILE);
    for (int i = 1; i < count; ++i) // first, since it sets all the others
        if (strcmp(words[i], "--policy") == 0 && i + 1 < count)
            kesco_policy_defaults(&settings.policy, std::uint32_t(strtoul(words[i + 1], nullptr, 10)));
    for (int i = 1; i < count; i += 2) {
        if (i + 1 == count || strncmp(words[i], "--", 2) != 0)
            return usage(words[i]);
        const char *name = words[i] + 2, *value = words[i + 1];
        if (strcmp(name, "socket") == 0)
            settings.socket = value;
        else if (strcmp(name, "costs") == 0)
            settings.costs = value;
        else if (strcmp(name, "record") == 0)
            settings.record = value;
        else if (strcmp(name, "cap") == 0)
            settings.priority_cap = atoi(value);
        else if (strcmp(name, "spin-ns") == 0)
            settings.spin = strtoull(value, nullptr, 10);
        else if (strcmp(name, "user") == 0 && strchr(value, ':'))
            settings.users[uid_t(strtoul(value, nullptr, 10))] = atoi(strchr(value, ':') + 1);
        else if (strcmp(name, "policy") != 0 && !setting(settings.policy, name, strtoull(value, nullptr, 10)))
            return usage(words[i]);
    }
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
    server.serve(&stop);
    return 0;
}
