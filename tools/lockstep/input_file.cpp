#include "tools/lockstep/input_file.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <system_error>
#include <zlib.h>

#include "models/input/input_error.hpp"

namespace lockstep {
namespace {

[[noreturn]] void fail_to_read(const std::string& path, const char* found, std::size_t limit) {
  throw InputError({.file = path,
                    .pointer = {},
                    .found = found,
                    .allowed = fmt::format(
                        "a readable file, plain or .gz, of at most {} MiB unpacked", limit >> 20U),
                    .nearest = {}});
}

}  // namespace

std::string read_maybe_gzip(const std::string& path, std::size_t limit) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) fail_to_read(path, "no such file", limit);
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) fail_to_read(path, "a file that does not open", limit);
  constexpr std::size_t kPart = std::size_t{1} << 20;
  std::string text;
  while (true) {
    const std::size_t before = text.size();
    text.resize(before + kPart);
    const int got = gzread(file.get(), text.data() + before, static_cast<unsigned>(kPart));
    if (got < 0) fail_to_read(path, "a broken file", limit);
    text.resize(before + static_cast<std::size_t>(got));
    if (text.size() > limit) fail_to_read(path, "a larger one", limit);
    if (got == 0) break;
  }
  int status = Z_OK;
  (void)gzerror(file.get(), &status);
  if (status != Z_OK && status != Z_STREAM_END) fail_to_read(path, "a file that was cut", limit);
  return text;
}

std::string read_head(const std::string& path, std::size_t bytes) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) return {};
  std::string text(bytes, ' ');
  const int got = gzread(file.get(), text.data(), static_cast<unsigned>(bytes));
  text.resize(static_cast<std::size_t>(std::max(got, 0)));
  return text;
}

}  // namespace lockstep
