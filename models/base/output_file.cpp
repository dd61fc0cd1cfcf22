#include "models/base/output_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <zlib.h>

#include "models/base/input_error.hpp"

namespace lockstep {

class OutputFile::Sink {
 public:
  virtual ~Sink() = default;
  virtual bool write(std::string_view bytes) = 0;
  virtual bool close() = 0;
};

class OutputFile::PlainSink : public OutputFile::Sink {
 public:
  PlainSink() = default;
  ~PlainSink() override {
    if (file_ != nullptr) std::fclose(file_);
  }
  PlainSink(const PlainSink&) = delete;
  PlainSink& operator=(const PlainSink&) = delete;
  bool open(const std::string& name) {
    file_ = std::fopen(name.c_str(), "wb");
    return file_ != nullptr;
  }
  bool write(std::string_view bytes) override {
    return std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size();
  }
  bool close() override { return std::fclose(std::exchange(file_, nullptr)) == 0; }

 private:
  std::FILE* file_ = nullptr;
};

class OutputFile::GzipSink : public OutputFile::Sink {
 public:
  GzipSink() = default;
  ~GzipSink() override {
    if (file_ != nullptr) gzclose(file_);
  }
  GzipSink(const GzipSink&) = delete;
  GzipSink& operator=(const GzipSink&) = delete;
  bool open(const std::string& name) {
    file_ = gzopen(name.c_str(), "wb6");
    return file_ != nullptr;
  }
  bool write(std::string_view bytes) override {
    // gzfwrite takes sizes beyond 32 bits, and returns 0 items for an error.
    return bytes.empty() || gzfwrite(bytes.data(), bytes.size(), 1, file_) == 1;
  }
  bool close() override { return gzclose(std::exchange(file_, nullptr)) == Z_OK; }

 private:
  gzFile file_ = nullptr;
};

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path_, ignored);
  if (std::filesystem::is_directory(status)) {
    errno = EISDIR;
    fail("opened");
  }
  const bool direct = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  if (!direct) temporary_ = fmt::format("{}.{}.tmp", path_, ::getpid());
  const std::string& name = direct ? path_ : temporary_;
  errno = 0;
  // Memory comes before the file, which would be left behind where there is none.
  if (path_.ends_with(".gz")) {
    auto sink = std::make_unique<GzipSink>();
    if (sink->open(name)) sink_ = std::move(sink);
  } else {
    auto sink = std::make_unique<PlainSink>();
    if (sink->open(name)) sink_ = std::move(sink);
  }
  if (sink_ == nullptr) {
    temporary_.clear();
    fail("opened");
  }
}

OutputFile::~OutputFile() {
  sink_.reset();
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

void OutputFile::write(std::string_view bytes) {
  if (!sink_->write(bytes)) fail("written");
}

void OutputFile::commit() {
  if (!sink_->close()) fail("written");
  sink_.reset();
  if (!temporary_.empty() && std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("renamed");
  temporary_.clear();
}

void OutputFile::fail(const std::string& what) const {
  const std::string reason = errno != 0 ? std::generic_category().message(errno) : "unknown error";
  throw InputError({.file = path_,
                    .pointer = {},
                    .found = reason,
                    .allowed = fmt::format("a file that can be {}", what),
                    .nearest = {}});
}

}  // namespace lockstep
