// One thing done in two ways that take turns: with, aside, aside, with, and so on, each a request, for some seconds.
#pragma once

#include <cstdio>
#include <vector>

extern "C" __attribute__((weak)) void kesco_fikit_pass_by(int on); // of FIKIT's library, where that is loaded

// `request(with)` is what one request took. Prints {"with": [...], "aside": [...]}: what the requests of each way took,
// in their order, without those of the first `warm` seconds.
template <typename Clock, typename Request> void alternate(Clock clock, double seconds, double warm, Request request) {
    const bool turns[4] = {true, false, false, true};
    std::vector<double> took[2];
    for (const double begin = clock(); clock() < begin + warm + seconds || took[0].empty();) {
        const bool counts = clock() >= begin + warm;
        for (const bool with : turns) {
            const double one = request(with);
            if (counts)
                took[with ? 0 : 1].push_back(one);
        }
    }
    for (int way = 0; way < 2; ++way) {
        std::printf(way ? "], \"aside\": [" : "{\"with\": [");
        for (std::size_t i = 0; i < took[way].size(); ++i)
            std::printf(i ? ",%.2f" : "%.2f", took[way][i]);
    }
    std::printf("]}\n");
    std::fflush(stdout);
}

// The request with FIKIT's library and past it.
template <typename Request> double past_library(bool with, Request request) {
    if (!with && kesco_fikit_pass_by)
        kesco_fikit_pass_by(1);
    const double took = request();
    if (!with && kesco_fikit_pass_by)
        kesco_fikit_pass_by(0);
    return took;
}
