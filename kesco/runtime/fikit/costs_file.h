// The profiles of tasks in the form without JSON that `kesco.ir.kfikit.to_text` writes, for the daemon.
#pragma once

#include "policy.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kesco::fikit {

/// The kernels of one task.
using TaskCosts = std::vector<KescoKernel>;

/// The file's content by the tasks' keys. Nothing, and in `why` what is wrong, where it cannot be read, is of another
/// form, or was cut off (its last line is "end"): a part of a profile is not used.
std::optional<std::map<std::string, TaskCosts>> read_costs(const std::string &path, std::string &why);

} // namespace kesco::fikit
