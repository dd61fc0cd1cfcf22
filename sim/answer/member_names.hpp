/// Which members of an answer are wanted.
#pragma once

#include <functional>
#include <set>
#include <string>

namespace lockstep {

/// Names of members of one level.
using MemberNames = std::set<std::string, std::less<>>;

}  // namespace lockstep
