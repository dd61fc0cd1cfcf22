/// Writes a result so that nobody ever sees half of it: to a temporary file beside the target that
/// takes the target's name when it is complete.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace lockstep {

/// A file being written. Names that end in ".gz" are compressed. A target that is no regular file
/// (/dev/stdout, a pipe) is written directly. Every function throws InputError, with the file name
/// and what the system said.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  /// Removes the temporary file unless commit() was called.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  /// Flushes and renames; nothing can be written after it.
  void commit();

 private:
  class Sink;
  class PlainSink;
  class GzipSink;
  void fail(const std::string& what) const;

  std::string path_;
  std::string temporary_;  ///< empty: written directly
  std::unique_ptr<Sink> sink_;
};

}  // namespace lockstep
