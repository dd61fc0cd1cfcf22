#include "models/input/text_file.hpp"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "models/input/input_error.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, std::string found) {
  throw InputError({path.empty() ? "(empty file name)" : path, "", std::move(found),
                    "a readable text file of at most 16 MiB", ""});
}

std::string describe(fs::file_type type) {
  switch (type) {
    case fs::file_type::not_found:
      return "no such file";
    case fs::file_type::directory:
      return "a directory";
    case fs::file_type::regular:
      return "a file";
    default:
      return "something that is no regular file";
  }
}

}  // namespace

std::string read_text_file(const std::string& path, std::size_t limit) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::none) refuse(path, "a path that cannot be followed");
  if (status.type() != fs::file_type::regular) refuse(path, describe(status.type()));

  std::ifstream in(path, std::ios::binary);
  if (!in) refuse(path, "a file that cannot be opened");
  // The size is not asked for beforehand: files of /proc say 0, and a file may grow meanwhile.
  std::string text;
  char block[1 << 16];
  while (in.read(block, sizeof block) || in.gcount() > 0) {
    text.append(block, static_cast<std::size_t>(in.gcount()));
    if (text.size() > limit) refuse(path, "more than " + std::to_string(limit) + " bytes");
  }
  if (in.bad()) refuse(path, "a file that cannot be read");
  return text;
}

}  // namespace lockstep
