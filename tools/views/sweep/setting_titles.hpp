/// What pages call what a sweep changes: words, where its results have names of columns.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "sim/search/sweep/sweep.hpp"

namespace lockstep {

/// The words of a key: "NIC bandwidth" of "nic_bandwidth".
std::string words_of_key(std::string_view key);

/// What stands at a JSON pointer of a scenario: "Checkpoint interval" of
/// "/run/checkpoint/interval".
std::string title_of_key(std::string_view pointer);

/// The title of each column of the sweep's settings, by its name. One that has a place in the
/// scenario is called after that, and two that would be called the same after their names.
std::map<std::string, std::string> setting_titles(const Sweep& sweep);

}  // namespace lockstep
