/// Files of a folder that appear together, or not at all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Writes beside what is there until all of it is whole: some of the files would be another answer.
/// What was not committed goes, and the folder too where it was made for it.
class OutputFolder {
 public:
  /// Makes the folder. Throws InputError where that cannot be.
  explicit OutputFolder(std::string folder);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// Throws InputError where it cannot be written.
  void write(const std::string& name, std::string_view bytes);
  /// All files to their places, in the order in which they were written. Throws InputError.
  void commit();

 private:
  std::string folder_, inside_;
  bool made_ = false;
  std::vector<std::string> names_;
};

}  // namespace lockstep
