#include "sim/scenario/built_in_residuals.hpp"

#include <cassert>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>

#include "models/base/mapped_file.hpp"

namespace lockstep {

#ifdef LOCKSTEP_BUILT_IN_RESIDUALS

namespace {

#include LOCKSTEP_BUILT_IN_RESIDUALS  // by tools/built_in_residuals.cpp

Residual run_alike(const BuiltInGroup& group) {
  return {.row = {},
          .source = group.source,
          .vendor = group.vendor,
          .traits = {.stack = group.stack,
                     .release = group.release,
                     .gpu = group.gpu,
                     .architecture = group.architecture,
                     .network = group.network,
                     .fabric = group.fabric,
                     .experts = group.experts,
                     .sharded_weights = group.sharded_weights,
                     .context = group.context}};
}

}  // namespace

bool has_built_in_residuals(const std::string& file) {
  std::error_code error;  // no file that can be compared is read, which says why it cannot be
  if (std::filesystem::file_size(file, error) != kText.size() || error) return false;
  return MappedFile(file).bytes() == kText;
}

ResidualTable built_in_residuals() {
  ResidualTable table;
  table.reserve(std::size(kRows));
  const BuiltInRow* row = std::begin(kRows);
  for (const BuiltInGroup& group : kGroups) {
    const Residual alike = run_alike(group);
    for (int i = 0; i < group.rows; ++i, ++row) {
      Residual& r = table.emplace_back(alike);
      r.row = row->row;
      r.fitted = row->fitted;
      r.left_out = row->left_out;
      r.vendor_left_out = row->vendor_left_out;
      r.as_default = row->as_default;
      r.composed = row->composed;
    }
  }
  classify(table);
  return table;
}

#else

bool has_built_in_residuals(const std::string& /*file*/) { return false; }
ResidualTable built_in_residuals() {
  assert(false && "compiled without them");
  return {};
}

#endif

}  // namespace lockstep
