#include "models/input/text_file.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "models/input/input_error.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::string size_text(std::size_t bytes) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  return bytes % kMiB == 0 ? std::to_string(bytes / kMiB) + " MiB"
                           : std::to_string(bytes) + " bytes";
}

std::string_view describe(fs::file_type type) {
  if (type == fs::file_type::not_found) return "no such file";
  if (type == fs::file_type::directory) return "a directory";
  if (type == fs::file_type::none) return "a path that cannot be followed";
  return "something that is no regular file";
}

}  // namespace

std::string read_text_file(const std::string& path, std::size_t limit) {
  const auto refuse = [&](std::string_view found) {
    throw InputError({path.empty() ? "(empty file name)" : path, "", std::string(found),
                      "a readable text file of at most " + size_text(limit), ""});
  };
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type != fs::file_type::regular) refuse(describe(type));

  std::ifstream in(path, std::ios::binary);
  if (!in) refuse("a file that cannot be opened");
  // The size is not asked for beforehand: files of /proc say 0, and a file may grow meanwhile.
  std::string text;
  std::array<char, 1 << 16> block{};
  while (in.read(block.data(), block.size()) || in.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > limit) refuse("more than " + std::to_string(limit) + " bytes");
  }
  if (in.bad()) refuse("a file that cannot be read");
  return text;
}

}  // namespace lockstep
