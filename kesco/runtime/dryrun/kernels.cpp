// What is known of kernels: from the table that `kesco check` wrote, and from the notes that `KESCO=check` put into
// programs and libraries when they were compiled.
#include "backend.h"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace dryrun {
namespace {

struct Known {
    std::map<std::string, Kernel> kernels;
    std::map<std::string, std::string> names; // plain → as in the device code
    bool deep = false;                        // a kernel follows pointers in memory
};

// A mangled name without what differs between compilers: `12_GLOBAL__N_1` for any anonymous namespace, and no `L`
// before a length, which clang writes for static functions.
std::string plain(const std::string &name) {
    std::string result;
    for (std::size_t at = 0; at < name.size();) {
        std::size_t digits = at;
        while (digits < name.size() && std::isdigit(static_cast<unsigned char>(name[digits])) != 0)
            ++digits;
        if (digits > at && name.compare(digits, 11, "_GLOBAL__N_") == 0) {
            result += "12_GLOBAL__N_1";
            at = digits + std::stoul(name.substr(at, digits - at));
        } else if (digits > at) {
            result += name.substr(at, digits - at);
            at = digits;
        } else {
            if (name[at] != 'L' || at + 1 == name.size() || std::isdigit(static_cast<unsigned char>(name[at + 1])) == 0)
                result += name[at];
            ++at;
        }
    }
    return result;
}

void read_kernels(Known &own, std::istream &table) {
    std::string line;
    while (std::getline(table, line)) {
        std::istringstream words(line);
        std::string word;
        words >> word;
        if (word == "@") {
            while (words >> word)
                own.names[plain(word)] = word;
            continue;
        }
        own.names[plain(word)] = word;
        Kernel &kernel = own.kernels[word];
        kernel = {};
        while (words >> word) {
            if (word[0] == '*') {
                const std::size_t colon = word.find(':');
                kernel.through.emplace_back(std::stoul(word.substr(1)), std::stoul(word.substr(colon + 1)));
            } else if (word[0] == '@') {
                kernel.symbols.push_back(word.substr(1));
            } else if (word[0] == '!') {
                const std::size_t colon = word.find(':');
                kernel.writes.emplace_back(std::stoul(word.substr(1)), std::stoul(word.substr(colon + 1)));
            } else {
                kernel.sizes.push_back(std::stoul(word));
            }
        }
        own.deep = own.deep || !kernel.through.empty() || !kernel.symbols.empty();
    }
}

Known &known() {
    static Known &one = []() -> Known & {
        auto &made = *new Known;
        const char *kernels = variable("_KERNELS");
        std::ifstream table(kernels == nullptr ? "/dev/null" : kernels);
        read_kernels(made, table);
        return made;
    }();
    return one;
}

// What `KESCO=check` puts into each object: a note with the table of its kernels. Its other notes are for whoever reads
// the record.
constexpr std::uint32_t kTable = 1;
constexpr const char kAuthor[] = "kesco";

void read_notes(Known &own, const char *at, const char *end) {
    const auto rounded = [](std::size_t size) { return (size + 3) / 4 * 4; };
    while (at + 12 <= end) {
        std::uint32_t head[3] = {}; // sizes of the name and of what is in it, kind
        std::memcpy(head, at, sizeof head);
        const char *name = at + sizeof head, *data = name + rounded(head[0]);
        if (data + head[1] > end)
            return;
        if (head[0] == sizeof kAuthor && std::memcmp(name, kAuthor, sizeof kAuthor) == 0 && head[2] == kTable) {
            std::istringstream table(std::string(data, head[1]));
            read_kernels(own, table);
        }
        at = data + rounded(head[1]);
    }
}

struct Modules {
    unsigned long long changes = ~0ULL; // how often something had been loaded or unloaded when they were looked at
    std::set<std::uintptr_t> known;
};

int look_at_module(dl_phdr_info *info, std::size_t size, void *given) {
    auto &modules = *static_cast<Modules *>(given);
    if (size >= offsetof(dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
        if (modules.changes == info->dlpi_adds + info->dlpi_subs)
            return 1;
    }
    std::uintptr_t low = ~std::uintptr_t{0}, high = 0;
    bool is_new = false;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto &part = info->dlpi_phdr[i];
        if (part.p_type == PT_LOAD) {
            low = std::min(low, static_cast<std::uintptr_t>(info->dlpi_addr + part.p_vaddr));
            high = std::max(high, static_cast<std::uintptr_t>(info->dlpi_addr + part.p_vaddr + part.p_memsz));
        }
    }
    if (high > low && modules.known.insert(low).second)
        is_new = true;
    if (!is_new)
        return 0;
    char program[4096] = "";
    const char *path = info->dlpi_name;
    if (path == nullptr || *path == 0) {
        const ssize_t length = modules.known.size() == 1 ? readlink("/proc/self/exe", program, sizeof program - 1) : 0;
        path = length > 0 ? program : "";
    }
    if (*path != 0)
        record("J " + hexadecimal(info->dlpi_addr) + " " + hexadecimal(low) + " " + hexadecimal(high) + " " + path);
    for (int i = 0; i < info->dlpi_phnum; ++i)
        if (info->dlpi_phdr[i].p_type == PT_NOTE) {
            const auto *notes = reinterpret_cast<const char *>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
            read_notes(known(), notes, notes + info->dlpi_phdr[i].p_memsz);
        }
    return 0;
}

int count_changes(dl_phdr_info *info, std::size_t, void *changes) {
    *static_cast<unsigned long long *>(changes) = info->dlpi_adds + info->dlpi_subs;
    return 1;
}

} // namespace

// Programs and libraries that were loaded since the last look: where they are, and what they say of their kernels.
void look_at_modules() {
    static auto &modules = *new Modules;
    dl_iterate_phdr(look_at_module, &modules);
    dl_iterate_phdr(count_changes, &modules.changes);
}

std::string name_on_device(const std::string &registered) {
    look_at_modules();
    const auto found = known().names.find(plain(registered));
    return found == known().names.end() ? registered : found->second;
}

bool follows_pointers() {
    return known().deep;
}

const Kernel *kernel_named(const std::string &name) {
    const auto found = known().kernels.find(name);
    return found == known().kernels.end() ? nullptr : &found->second;
}

} // namespace dryrun
