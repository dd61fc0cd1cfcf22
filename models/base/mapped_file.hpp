/// A large input file whose bytes the system reads when they are looked at.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

/// The bytes of a regular file, as they are there (nothing is unpacked). Throws InputError for
/// what cannot be opened or mapped: a pipe, a folder.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// As long as this object lives.
  [[nodiscard]] std::string_view bytes() const;
  /// The first so many bytes were read: they leave memory, and come back when they are looked at.
  void forget(std::size_t bytes) const;

 private:
  void* data_ = nullptr;  ///< null of an empty file, which cannot be mapped
  std::size_t size_ = 0;
};

}  // namespace lockstep
