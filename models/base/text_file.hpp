/// Opens input files, and reads them whole, with the limits that keep a mistake from becoming a
/// hang.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep {

constexpr std::size_t kInputFileLimit = std::size_t{16}
                                        << 20;  ///< bytes; the largest input is ~2 MB

/// What stands for standard input where a file's name is asked for.
constexpr const char* kStandardInput = "-";

/// An input that is open for reading: a regular file, a pipe, or standard input ("-").
class InputFile {
 public:
  /// `allowed`: what its errors allow. Throws InputError if there is no such file, if it is
  /// something else (a folder, a device), cannot be opened, or is a pipe without a writer, whose
  /// first byte would never come: a second is given to those that are about to open it.
  InputFile(const std::string& path, const std::string& allowed);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// As read(2), and goes on where a signal interrupted it.
  [[nodiscard]] std::ptrdiff_t read(char* to, std::size_t most);

 private:
  /// Of a pipe that was opened without blocking: reading waits for ever where nobody writes.
  bool find_writer();

  int descriptor_ = -1;
  bool has_first_ = false;
  char first_ = 0;  ///< read while looking for a writer
};

/// The bytes of a file, pipe or standard input ("-"), at most `limit`. Throws InputError if it is
/// missing, too large, unreadable or none of these.
std::string read_text_file(const std::string& path, std::size_t limit = kInputFileLimit);

}  // namespace lockstep
