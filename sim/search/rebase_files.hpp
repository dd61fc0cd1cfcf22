/// A scenario that moves to another folder keeps the files that it names.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace lockstep {

/// Every string of `scenario`, whichever key it is of, that names a file starting from the folder
/// of the file `from` is made to start from the folder of `to`.
void rebase_files(nlohmann::ordered_json& scenario, const std::string& from, const std::string& to);

}  // namespace lockstep
