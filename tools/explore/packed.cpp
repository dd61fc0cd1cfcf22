#include "tools/explore/packed.hpp"

#include <openssl/evp.h>
#include <stdexcept>
#include <zlib.h>

namespace lockstep {

std::string gzip(std::string_view bytes) {
  constexpr int kGzip = 16, kMemory = 8;  // zlib's words for a gzip header and its usual memory
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, kMemory,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("zlib does not start");
  }
  std::string in(bytes);
  std::string out(deflateBound(&stream, static_cast<uLong>(in.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw std::runtime_error("zlib does not compress");
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::size_t kIn = 3, kOut = 4;
  std::string out((bytes.size() + kIn - 1) / kIn * kOut + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(size));
  return out;
}

}  // namespace lockstep
