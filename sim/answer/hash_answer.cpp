#include "sim/answer/hash_answer.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"

namespace lockstep {

nlohmann::ordered_json hash_json(const HashAnswer& hash) {
  nlohmann::ordered_json out{{"draw", hash.draw}};
  if (hash.draws > 1) out["draws"] = hash.draws;
  return out;
}

void add_band(const HashBand& band, nlohmann::ordered_json& out, const std::string& unit) {
  const auto add = [&](const std::string& name, const HashDraw& of) {
    out[name + unit] = twelve_digits(of.value);
    out[name + "_draw"] = of.draw;
  };
  add("least", band.least);
  add("median", band.median);
  add("most", band.most);
}

void add_band_headline(const HashBand& band, nlohmann::ordered_json& out) {
  out["hash_least_s"] = twelve_digits(band.least.value);
  out["hash_median_s"] = twelve_digits(band.median.value);
  out["hash_most_s"] = twelve_digits(band.most.value);
}

std::string hash_text(const HashBand& band) {
  const auto part = [](const HashDraw& of) {
    return fmt::format("{} (draw {})", duration_text(of.value), of.draw);
  };
  if (band.least.value == band.most.value) {
    return fmt::format("{} with every draw", duration_text(band.least.value));
  }
  return fmt::format("{} to {}, median {}", part(band.least), part(band.most), part(band.median));
}

std::string one_draw_text(const HashAnswer& hash) {
  return fmt::format("draw {} of the paths' hashes; --hash-seeds N shows the band over N of them",
                     hash.draw);
}

}  // namespace lockstep
