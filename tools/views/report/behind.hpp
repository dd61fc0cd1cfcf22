/// What stands behind the figures of a page: what `lockstep explain` says of each.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sim/measured/explanation.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

class Page;

/// The answer that a page shows, and what explains its numbers. `file`: the scenario's. Requires
/// `presets` to live as long.
class Behind {
 public:
  Behind(std::string file, ExplainedAnswer answer, const PresetStore& presets)
      : file_(std::move(file)), answer_(std::move(answer)), presets_(presets) {}

  [[nodiscard]] const PresetStore& presets() const { return presets_; }

  /// Whether the answer has this number, and it is explained.
  [[nodiscard]] bool opens(std::string_view field) const;
  /// The first of these that it opens, for figures that answers have by several names; empty: none.
  [[nodiscard]] std::string one_of(std::initializer_list<std::string_view> fields) const;

  /// From here on figures of the page that name a number of the answer lead to the part about it.
  void open_figures(Page& page) const;
  /// A section with a part for each of these figures and for `more` numbers, closed until a figure
  /// is pressed: formula, inputs with their sources, interval, nearest published runs. Numbers that
  /// the answer has no value of have no part.
  void add_to(Page& page, std::span<const std::string_view> more = {}) const;

 private:
  std::string file_;
  ExplainedAnswer answer_;
  const PresetStore& presets_;
};

}  // namespace lockstep
