/// What there is to choose from: presets of each kind, collectives, schedules. One row of kinds()
/// per word that `lockstep list` and `lockstep show` take.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/number_text.hpp"

namespace lockstep {

class PresetStore;

/// A table before it is formatted; `names` go to JSON and CSV, with their units.
struct Listing {
  struct Column {
    std::string name;   ///< "bf16_tflops_per_s"
    std::string title;  ///< "bf16 TFLOP/s"
    bool number = true;
  };
  std::vector<Column> columns;                 ///< the first is the name, the last a description
  std::vector<std::vector<std::string>> rows;  ///< numbers as number_text() writes them
  bool entries = false;  ///< as text: a line for each name, the other columns in lines below it
};

struct ListKind {
  std::string_view plural;    ///< "gpus": for `list`
  std::string_view singular;  ///< "gpu": for `show`
  std::string_view summary;
  bool preset;  ///< has files with sources, through PresetStore::show()
  Listing (*list)(const PresetStore& presets);
};
std::span<const ListKind> list_kinds();

/// By singular or plural name. Throws UsageError with the nearest one.
const ListKind& list_kind(std::string_view name);

}  // namespace lockstep
