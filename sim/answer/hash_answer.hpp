/// What an answer says of draws of an ECMP fabric's hashes.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/fabric/hash_band.hpp"

namespace lockstep {

/// What an answer says of draws: which one it is, and the bands of its numbers over several.
struct HashAnswer {
  int draw = 1;
  int draws = 1;
  std::vector<HashBand> bands{};  ///< in the order of the numbers; empty where there is one draw
};

/// {"draw"}, with several also {"draws"}.
nlohmann::ordered_json hash_json(const HashAnswer& hash);
/// Adds "least_s", "least_draw", "median_s" and so on; ratios have another `unit`, "".
void add_band(const HashBand& band, nlohmann::ordered_json& out, const std::string& unit = "_s");
/// Adds "hash_least_s", "hash_median_s" and "hash_most_s", for the first level of an answer.
void add_band_headline(const HashBand& band, nlohmann::ordered_json& out);

/// "5.12 s (draw 3) to 5.9 s (draw 7), median 5.31 s (draw 1)", or "5.12 s with every draw"
std::string hash_text(const HashBand& band);
/// Of an answer with one draw: which, and how to see others.
std::string one_draw_text(const HashAnswer& hash);

}  // namespace lockstep
