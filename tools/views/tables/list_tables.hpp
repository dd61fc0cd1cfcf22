/// What `lockstep list` and `lockstep show` print.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/scenario/preset_store.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/views/tables/listing.hpp"

namespace lockstep {

/// The rows whose name begins with one of these; a number in it stands for the "*" of any item of a
/// list. Throws UsageError with the nearest name where no row begins with one.
Listing beginning_with(const ListKind& kind, Listing listing,
                       std::span<const std::string> beginnings);

/// What `lockstep list` prints, in the format asked for.
Answer listing_text(const Listing& listing, const std::string& format, const TextStyle& style);

/// Rows of a preset that stands in the program.
std::vector<PresetRow> built_in_rows(const ListKind& kind, const PresetStore& presets,
                                     const std::string& name);

/// What `lockstep show` prints, in the format asked for.
Answer rows_text(const std::vector<PresetRow>& rows, const std::string& format);

}  // namespace lockstep
