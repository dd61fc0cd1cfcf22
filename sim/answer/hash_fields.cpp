#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "sim/answer/answer_fields.hpp"

namespace lockstep {
namespace {

/// One number over the draws. `band` takes an answer and gives its band, if there are draws.
template <class Of, class Band>
void add_band_fields(FieldTable<Of>& fields, const std::string& unit, Better better, Band band) {
  const auto add = [&](const std::string& name, HashDraw HashBand::* which) {
    fields
        .add(name + unit, better, "The " + name + " over the draws.",
             [band, which](const Of& of) -> std::optional<double> {
               const std::optional<HashBand> known = band(of);
               if (!known) return std::nullopt;
               return ((*known).*which).value;
             })
        .add(name + "_draw", "The draw that gives it.",
             [band, which](const Of& of) -> std::optional<int> {
               const std::optional<HashBand> known = band(of);
               if (!known) return std::nullopt;
               return ((*known).*which).draw;
             });
  };
  add("least", &HashBand::least);
  add("median", &HashBand::median);
  add("most", &HashBand::most);
}

std::optional<HashBand> band_of(const HashAnswer& hash, std::size_t band) {
  if (hash.draws <= 1) return std::nullopt;
  return hash.bands[band];
}

FieldTable<HashBand> band_fields(const std::string& unit, Better better) {
  FieldTable<HashBand> out;
  add_band_fields(out, unit, better, [](const HashBand& band) { return std::optional(band); });
  return out;
}

}  // namespace

const FieldTable<HashAnswer>& draw_fields() {
  static const FieldTable<HashAnswer> fields =
      FieldTable<HashAnswer>()
          .add("draw", "The draw of the hashes that the answer is of.",
               [](const HashAnswer& h) { return h.draw; })
          .add("draws", "How many were simulated, where it is more than one.",
               [](const HashAnswer& h) {
                 return h.draws > 1 ? std::optional(h.draws) : std::nullopt;
               });
  return fields;
}

const FieldTable<HashAnswer>& hash_fields() {
  static const FieldTable<HashAnswer> fields = [] {
    FieldTable<HashAnswer> out = draw_fields();
    add_band_fields(out, "_s", Better::less, [](const HashAnswer& h) { return band_of(h, 0); });
    return out;
  }();
  return fields;
}

const FieldTable<HashAnswer>& run_hash_fields() {
  static const FieldTable<HashAnswer> fields = [] {
    FieldTable<HashAnswer> out = hash_fields();
    out.object("wall", "Wall time of the run.", band_fields("_s", Better::less),
               [](const HashAnswer& h) { return band_of(h, 1); })
        .object("goodput", "Goodput of the run.", band_fields("", Better::more),
                [](const HashAnswer& h) { return band_of(h, 2); });
    return out;
  }();
  return fields;
}

const FieldTable<HashBand>& time_band_fields() {
  static const FieldTable<HashBand> fields = band_fields("_s", Better::less);
  return fields;
}

const FieldTable<JobBands>& job_band_fields() {
  static const FieldTable<JobBands> fields = [] {
    FieldTable<JobBands> out;
    add_band_fields(out, "_s", Better::less,
                    [](const JobBands& bands) { return std::optional(bands.step); });
    out.object("slowdown", "Of the job by all others.", band_fields("", Better::less),
               [](const JobBands& bands) { return bands.slowdown; });
    return out;
  }();
  return fields;
}

}  // namespace lockstep
