/// What the kinds of `lockstep import` share: the machine that was measured, and what comes out.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "models/hardware.hpp"

namespace lockstep {

/// What was measured, as the user said.
struct ImportMachine {
  std::string gpu;                 ///< name of a preset
  const NodeSpec* node = nullptr;  ///< with that card; null: not said
};

struct Imported {
  std::string profile;                ///< its text
  std::vector<std::string> left_out;  ///< a line each, for people
};

/// Why something of a file was left out, and how often.
using LeftOut = std::map<std::string, std::size_t>;
/// "12 rows of a.log left out: wrong results".
void note_left_out(const LeftOut& why, const char* what, const std::string& file,
                   std::vector<std::string>& lines);

}  // namespace lockstep
