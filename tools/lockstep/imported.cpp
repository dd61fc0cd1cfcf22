#include "tools/lockstep/imported.hpp"

#include <fmt/format.h>

namespace lockstep {

void note_left_out(const LeftOut& why, const char* what, const std::string& file,
                   std::vector<std::string>& lines) {
  for (const auto& [reason, count] : why) {
    lines.push_back(fmt::format("{} {}{} of {} left out: {}", count, what, count == 1 ? "" : "s",
                                file, reason));
  }
}

}  // namespace lockstep
