/// One door for every format that describes a network or a server: recognises it, reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "topologies/formats/drawn_fabric.hpp"
#include "topologies/formats/named_graph.hpp"
#include "topologies/formats/node_drawing.hpp"

namespace lockstep {

using Import = std::variant<DrawnFabric, NodeDrawing>;

/// To add a format: its reader in this folder, and its row in import.cpp.
struct ImportFormat {
  std::string_view name;                ///< for --format
  std::string_view title;               ///< "Slurm topology"
  std::string_view source;              ///< where the format is described
  bool (*fits)(std::string_view text);  ///< whether the text looks like it
  Import (*read)(const std::string& file, std::string_view text, const ImportOptions& options);
};
std::span<const ImportFormat> import_formats();

/// The format that the text looks like. Throws InputError with the first line that holds something.
const ImportFormat& recognise(const std::string& file, std::string_view text);

/// Reads a file's text in that format. Hosts of `options` come first. Throws InputError.
Import import_text(const std::string& file, std::string_view text, const ImportFormat& format,
                   const ImportOptions& options);

}  // namespace lockstep
