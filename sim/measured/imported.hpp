/// What the kinds of `lockstep import` share: the machine that was measured, and what comes out.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/kernels/kernel_profile.hpp"
#include "models/spec/hardware.hpp"

namespace lockstep {

/// What was measured, as the user said.
struct ImportMachine {
  std::string gpu;                 ///< name of a preset
  const NodeSpec* node = nullptr;  ///< with that card; null: not said

  /// What said the card, for messages.
  [[nodiscard]] std::string option() const {
    return node == nullptr ? "--gpu" : "--node " + node->name;
  }
};

/// A kernel of a trace that became no point of the profile.
struct LeftOutKernel {
  std::string name;
  std::string_view kind;
  std::size_t calls = 0;
  double total_us = 0, median_us = 0;  ///< of its calls
  std::string why;
};

struct Imported {
  std::string profile;                   ///< its text
  std::vector<std::string> left_out;     ///< a line each, for people
  std::vector<LeftOutKernel> kernels{};  ///< of traces: what was left out, longest first
};

/// Why something of a file was left out, and how often.
using LeftOut = std::map<std::string, std::size_t>;
/// "12 rows of a.log left out: wrong results".
void note_left_out(const LeftOut& why, const char* what, const std::string& file,
                   std::vector<std::string>& lines);

/// The text of a profile: a line for each point.
std::string profile_json_text(const nlohmann::ordered_json& profile);

/// Times in microseconds by the point that they are of, which is written as JSON text without time:
/// equal points are one.
using TimesByPoint = std::map<std::string, std::vector<double>>;
std::string product_text(const GemmPoint& point);
std::string attention_text(const AttentionPoint& point);
/// Appends points to a profile's `key`, each with the median of its times and the distance of their
/// quartiles as spread; `waits`: with the shortest and no spread, since the others waited for
/// something.
void add_points(std::string_view key, const TimesByPoint& points, bool waits,
                nlohmann::ordered_json& out);

}  // namespace lockstep
