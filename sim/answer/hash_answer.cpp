#include "sim/answer/hash_answer.hpp"

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

}  // namespace lockstep
