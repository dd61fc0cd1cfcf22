/// Names of nodes as Slurm writes many of them at once: "n[1-4,7]".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The numbers in a host list, in its order: "n[1-4,7],n12" -> 1, 2, 3, 4, 7, 12. Nothing for a
/// text that is none, or of more than `most` hosts.
std::optional<std::vector<int>> host_numbers(std::string_view text, std::size_t most);

/// The names in a host list, in its order: "a[08-10],b" -> a08, a09, a10, b; several pairs of
/// brackets count like the digits of a number. Nothing for a text that is none, or of more than
/// `most` hosts.
std::optional<std::vector<std::string>> host_names(std::string_view text, std::size_t most);

/// "n[1-4,7]" of the numbers 1, 2, 3, 4, 7: rising ranges behind one prefix. "" of none.
std::string host_list(std::string_view prefix, std::vector<int> numbers);

}  // namespace lockstep
