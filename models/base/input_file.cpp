#include "models/base/input_file.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <system_error>
#include <vector>
#include <zlib.h>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kPart = std::size_t{1} << 18;  // bytes, packed
constexpr std::array<unsigned char, 2> kGzipMagic{0x1f, 0x8b};

class InputReader {
 public:
  InputReader(const std::string& path, std::size_t limit)
      : path_(path),
        limit_(limit),
        allowed_(
            fmt::format("a readable file, plain or .gz, of at most {} MiB unpacked", limit >> 20U)),
        in_(path, allowed_) {}

  std::string read() {
    std::vector<char> part(kPart);
    std::size_t got = fill(part, 0);
    if (got == 1) got += fill(part, 1);  // a pipe may give the magic byte by byte
    const bool packed =
        got >= kGzipMagic.size() &&
        std::equal(kGzipMagic.begin(), kGzipMagic.end(), part.begin(),
                   [](unsigned char a, char b) { return a == static_cast<unsigned char>(b); });
    for (; got > 0; got = fill(part, 0)) {
      packed_ += got;
      packed ? unpack(part.data(), got) : keep(part.data(), got);
    }
    if (packed && !whole_) fail("a file that was cut");
    return std::move(text_);
  }

 private:
  struct InflateEnd {
    void operator()(z_stream* stream) const {
      inflateEnd(stream);
      delete stream;
    }
  };

  [[noreturn]] void fail(const std::string& found) const {
    throw InputError(
        {.file = path_, .pointer = {}, .found = found, .allowed = allowed_, .nearest = {}});
  }

  std::size_t fill(std::vector<char>& part, std::size_t first) {
    const std::ptrdiff_t got = in_.read(part.data() + first, part.size() - first);
    if (got < 0) fail("a file that cannot be read");
    return static_cast<std::size_t>(got);
  }

  void keep(const char* bytes, std::size_t count) {
    text_.append(bytes, count);
    if (text_.size() > limit_) fail("a larger one");
  }

  void unpack(char* bytes, std::size_t count) {
    if (!stream_) {
      stream_.reset(new z_stream{});
      constexpr int kLargestWindow = 15, kGzip = 16;
      if (inflateInit2(stream_.get(), kLargestWindow + kGzip) != Z_OK) fail("a broken file");
    }
    stream_->next_in = reinterpret_cast<Bytef*>(bytes);
    stream_->avail_in = static_cast<uInt>(count);
    std::vector<char> out(kPart);
    bool full = false;  // there may be more of what was taken in
    while (stream_->avail_in > 0 || full) {
      if (whole_) {
        // One member behind another, as of files that were put together; padding is passed over.
        if (stream_->avail_in == 0 || *stream_->next_in != kGzipMagic[0]) return;
        if (inflateReset(stream_.get()) != Z_OK) fail("a broken file");
        whole_ = false;
      }
      stream_->next_out = reinterpret_cast<Bytef*>(out.data());
      stream_->avail_out = static_cast<uInt>(out.size());
      const int status = inflate(stream_.get(), Z_NO_FLUSH);
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) fail("a broken file");
      whole_ = status == Z_STREAM_END;
      full = stream_->avail_out == 0;
      keep(out.data(), out.size() - stream_->avail_out);
      if (text_.size() > std::max(kUnpackedFreely, kMostUnpacking * packed_)) {
        throw InputError(
            {.file = path_,
             .pointer = {},
             .found = fmt::format("{} bytes of gzip that unpack to more than {} times as many",
                                  packed_, text_.size() / packed_),
             .allowed = fmt::format("at most {} times as many beyond {} MiB; a file that is really "
                                    "so uniform is read unpacked",
                                    kMostUnpacking, kUnpackedFreely >> 20U),
             .nearest = {}});
      }
    }
  }

  const std::string& path_;
  std::size_t limit_;
  std::string allowed_;
  InputFile in_;
  std::unique_ptr<z_stream, InflateEnd> stream_;
  std::string text_;
  std::size_t packed_ = 0;
  bool whole_ = false;  ///< a member of the gzip file has ended
};

}  // namespace

std::string read_maybe_gzip(const std::string& path, std::size_t limit) {
  return InputReader(path, limit).read();
}

std::string read_head(const std::string& path, std::size_t bytes) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};  // a pipe's are gone then
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) return {};
  std::string text(bytes, ' ');
  const int got = gzread(file.get(), text.data(), static_cast<unsigned>(bytes));
  text.resize(static_cast<std::size_t>(std::max(got, 0)));
  return text;
}

}  // namespace lockstep
