#include "models/base/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

[[noreturn]] void refuse_mapping(const std::string& path) {
  throw InputError({.file = path,
                    .pointer = {},
                    .found = "no file that can be mapped",
                    .allowed = "a readable regular file",
                    .nearest = {}});
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) refuse_mapping(path);
  struct stat about{};
  const bool regular = fstat(file, &about) == 0 && S_ISREG(about.st_mode);
  size_ = regular ? static_cast<std::size_t>(about.st_size) : 0;
  if (size_ > 0) data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);  // the mapping stays
  if (!regular || data_ == MAP_FAILED) refuse_mapping(path);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, size_);
}

void MappedFile::forget(std::size_t bytes) const {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t whole = bytes / page * page;
  if (whole > 0) madvise(data_, whole, MADV_DONTNEED);  // of a private mapping that is only read
}

std::string_view MappedFile::bytes() const {
  return data_ == nullptr ? std::string_view() : std::string_view(static_cast<char*>(data_), size_);
}

}  // namespace lockstep
