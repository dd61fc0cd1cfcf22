// Reading files in a page: texts that it holds under a path, never pipes, never packed. In the
// place of models/base/text_file.cpp and input_file.cpp. Measured runs are none of them: a number
// that is explained has no nearest ones.
#include <array>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/input_file.hpp"
#include "models/base/text_file.hpp"
#include "sim/measured/nearest_measured.hpp"
#include "sim/measured/reference_files.hpp"
#include "sim/measured/row_document.hpp"

namespace lockstep {
namespace {

[[noreturn]] void refuse(const std::string& path, std::string found) {
  throw InputError({.file = path,
                    .pointer = {},
                    .found = std::move(found),
                    .allowed = "a file that the page holds: the presets",
                    .nearest = {}});
}

}  // namespace

InputFile::InputFile(const std::string& path, const std::string& /*allowed*/)
    : descriptor_(open(path.c_str(), O_RDONLY)) {
  if (descriptor_ < 0) refuse(path, "no such file");
}
InputFile::~InputFile() { close(descriptor_); }
std::ptrdiff_t InputFile::read(char* to, std::size_t most) { return ::read(descriptor_, to, most); }

std::string read_text_file(const std::string& path, std::size_t limit) {
  InputFile in(path, {});
  std::string text;
  std::array<char, 1 << 16> block{};
  while (const std::ptrdiff_t got = in.read(block.data(), block.size())) {
    if (got < 0 || text.size() > limit) refuse(path, "a file that cannot be read");
    text.append(block.data(), static_cast<std::size_t>(got));
  }
  return text;
}

std::string read_maybe_gzip(const std::string& path, std::size_t limit) {
  return read_text_file(path, limit);
}
std::string read_head(const std::string& path, std::size_t bytes) {
  return read_text_file(path, kInputFileLimit).substr(0, bytes);
}

std::string reference_file(const PresetStore& /*presets*/, std::string_view name) {
  return std::string(name);
}
std::vector<ReferenceRow> load_rows(const std::string& /*file*/, const PresetStore& /*presets*/) {
  return {};
}
NearestMeasured nearest_memory(const nlohmann::ordered_json& /*answer*/,
                               const PresetStore& /*presets*/, std::size_t /*keep*/) {
  return {};
}
NearestMeasured nearest_power(const nlohmann::ordered_json& /*answer*/,
                              const std::string& /*field*/, const std::string& /*unit*/,
                              const PresetStore& /*presets*/, std::size_t /*keep*/) {
  return {};
}
NearestMeasured nearest_collectives(const nlohmann::ordered_json& /*answer*/,
                                    const std::string& /*field*/, const std::string& /*unit*/,
                                    const PresetStore& /*presets*/, std::size_t /*keep*/) {
  return {};
}

}  // namespace lockstep
