#include "models/base/text_file.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <string_view>
#include <system_error>
#include <unistd.h>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr int kPatienceMs = 1000;  // assumed: longer than a shell takes to start a writer

std::string size_text(std::size_t bytes) {
  constexpr std::size_t kMiB = std::size_t{1} << 20, kGiB = kMiB << 10;
  if (bytes > 0 && bytes % kGiB == 0) return std::to_string(bytes / kGiB) + " GiB";
  return bytes % kMiB == 0 ? std::to_string(bytes / kMiB) + " MiB"
                           : std::to_string(bytes) + " bytes";
}

std::string_view describe(fs::file_type type) {
  if (type == fs::file_type::not_found) return "no such file";
  if (type == fs::file_type::directory) return "a directory";
  if (type == fs::file_type::none) return "a path that cannot be followed";
  return "something that is no regular file";
}

[[noreturn]] void refuse_input(const std::string& path, std::string_view found,
                               const std::string& allowed) {
  throw InputError({.file = path.empty() ? "(empty file name)" : path,
                    .pointer = {},
                    .found = std::string(found),
                    .allowed = allowed,
                    .nearest = {}});
}

}  // namespace

InputFile::InputFile(const std::string& path, const std::string& allowed) {
  if (path == kStandardInput) {
    descriptor_ = dup(STDIN_FILENO);
    if (descriptor_ < 0) refuse_input(path, "no standard input", allowed);
    return;
  }
  std::error_code ignored;
  const fs::file_type type = fs::status(path, ignored).type();
  const bool is_pipe = type == fs::file_type::fifo;
  if (type != fs::file_type::regular && !is_pipe) refuse_input(path, describe(type), allowed);
  descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | (is_pipe ? O_NONBLOCK : 0));
  if (descriptor_ < 0) refuse_input(path, "a file that cannot be opened", allowed);
  if (!is_pipe) return;
  if (!find_writer()) {
    close(descriptor_);
    refuse_input(path, "a pipe that nobody writes to", allowed);
  }
  (void)fcntl(descriptor_, F_SETFL, fcntl(descriptor_, F_GETFL) & ~O_NONBLOCK);
}

InputFile::~InputFile() { close(descriptor_); }

bool InputFile::find_writer() {
  pollfd waits{.fd = descriptor_, .events = POLLIN, .revents = 0};
  if (poll(&waits, 1, kPatienceMs) > 0) return true;
  // Without blocking: -1 and EAGAIN from an empty pipe with a silent writer, 0 without one.
  const ssize_t got = ::read(descriptor_, &first_, 1);
  has_first_ = got == 1;
  return got != 0;
}

std::ptrdiff_t InputFile::read(char* to, std::size_t most) {
  if (has_first_ && most > 0) {
    has_first_ = false;
    *to = first_;
    return 1;
  }
  while (true) {
    const ssize_t got = ::read(descriptor_, to, most);
    if (got >= 0 || errno != EINTR) return got;
  }
}

std::string read_text_file(const std::string& path, std::size_t limit) {
  const std::string allowed = "a readable text file of at most " + size_text(limit);
  InputFile in(path, allowed);
  // The size is not asked for beforehand: files of /proc say 0, and a file may grow meanwhile.
  std::string text;
  std::array<char, 1 << 16> block;  // not zeroed, which takes longer than to read most files
  while (const std::ptrdiff_t got = in.read(block.data(), block.size())) {
    if (got < 0) refuse_input(path, "a file that cannot be read", allowed);
    text.append(block.data(), static_cast<std::size_t>(got));
    if (text.size() > limit) {
      refuse_input(path, "more than " + std::to_string(limit) + " bytes", allowed);
    }
  }
  return text;
}

}  // namespace lockstep
