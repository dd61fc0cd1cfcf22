/// Slurm's short form of many names: "n[1-4,7]", "rack[01-02]-n[1-8]", "a,b".
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The names in the order of the text; nothing: it is no such list, or stands for more than `limit`
/// names. "n[01-10]" keeps its zeros.
std::optional<std::vector<std::string>> expand_hostlist(std::string_view text, std::size_t limit);

/// The shortest list for names in this order: numbers that rise by one become a range.
std::string compress_hostlist(std::span<const std::string> names);

}  // namespace lockstep
