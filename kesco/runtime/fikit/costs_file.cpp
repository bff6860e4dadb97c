#include "costs_file.h"

#include "policy_times.h"

#include <fstream>
#include <sstream>

namespace kesco::fikit {
namespace {

bool read_times(std::istream &line, KescoTimes &times) {
    line >> std::dec >> times.count >> times.mean;
    for (int n = 0; n < KESCO_KNOTS; ++n)
        line >> times.parts[n] >> times.knots[n];
    return line && sensible(times);
}

} // namespace

std::optional<std::map<std::string, TaskCosts>> read_costs(const std::string &path, std::string &why) {
    std::ifstream file(path);
    std::string text;
    if (!std::getline(file, text) || text != "kesco-fikit-costs 2") {
        why = path + (file.is_open() ? ": not a file of costs, version 2" : ": cannot be read");
        return std::nullopt;
    }
    std::map<std::string, TaskCosts> found;
    TaskCosts *task = nullptr;
    for (int number = 2; std::getline(file, text); ++number) {
        std::istringstream line(text);
        std::string word, key;
        line >> word;
        if (word == "end")
            return found;
        KescoKernel kernel = {};
        if (word == "task" && line >> key)
            task = &found[key];
        else if (word == "kernel" && task && line >> std::hex >> kernel.identity &&
                 read_times(line, kernel.cost.time) && read_times(line, kernel.cost.gap))
            task->push_back(kernel);
        else {
            why = path + ":" + std::to_string(number) + ": damaged";
            return std::nullopt;
        }
    }
    why = path + ": cut off";
    return std::nullopt;
}

} // namespace kesco::fikit
