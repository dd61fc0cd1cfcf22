// Compressed input: small files stay small, whatever they say.
#include "models/base/input_file.hpp"

#include <doctest/doctest.h>
#include <fstream>
#include <string>
#include <zlib.h>

#include "models/base/input_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMuch = std::size_t{1} << 30;

/// Appends a member of a gzip file.
void add_gzip(const std::string& path, const std::string& text, std::size_t times = 1) {
  const gzFile file = gzopen(path.c_str(), "ab9");
  for (std::size_t i = 0; i < times; ++i) {
    REQUIRE(gzwrite(file, text.data(), static_cast<unsigned>(text.size())) ==
            static_cast<int>(text.size()));
  }
  REQUIRE(gzclose(file) == Z_OK);
}

/// Text that gzip makes a few times smaller, as it does a trace.
std::string mixed_text(std::size_t lines) {
  std::string out;
  std::uint64_t state = 7;
  for (std::size_t i = 0; i < lines; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    out += "{\"ts\": " + std::to_string(state >> 20U) + ", \"ph\": \"X\"}\n";
  }
  return out;
}

}  // namespace

TEST_CASE("read_maybe_gzip: plain, packed and packed in several members are the same text") {
  const test::TemporaryFolder folder;
  const std::string text = mixed_text(100'000);  // more than one part of the packed file
  CHECK(read_maybe_gzip(folder.write("plain", text), kMuch) == text);
  const std::string packed = folder.path() + "/packed.gz";
  add_gzip(packed, text);
  add_gzip(packed, "and more");
  CHECK(read_maybe_gzip(packed, kMuch) == text + "and more");
  std::ofstream(packed, std::ios::app | std::ios::binary) << std::string(512, '\0');  // of a tape
  CHECK(read_maybe_gzip(packed, kMuch) == text + "and more");
  CHECK(read_maybe_gzip(folder.write("empty", ""), kMuch).empty());
}

TEST_CASE("read_maybe_gzip: a small file that unpacks to gigabytes is refused before it does") {
  const test::TemporaryFolder folder;
  const std::string bomb = folder.path() + "/bomb.gz";
  add_gzip(bomb, std::string(std::size_t{1} << 20, ' '), 100);
  try {
    (void)read_maybe_gzip(bomb, kMuch);
    CHECK_MESSAGE(false, "it was read");
  } catch (const InputError& error) {
    CHECK(error.problem().found.find("bytes of gzip that unpack to more than ") !=
          std::string::npos);
    CHECK(error.problem().allowed.starts_with("at most 100 times as many beyond 64 MiB"));
  }
  // Below 64 MiB anything may be as uniform as it likes.
  const std::string dull = folder.path() + "/dull.gz";
  add_gzip(dull, std::string(std::size_t{1} << 20, ' '), 63);
  CHECK(read_maybe_gzip(dull, kMuch).size() == std::size_t{63} << 20);
}

TEST_CASE("read_maybe_gzip: broken, cut, larger, missing, a folder: one line each") {
  const test::TemporaryFolder folder;
  const std::string packed = folder.path() + "/packed.gz";
  add_gzip(packed, mixed_text(2000));
  std::ifstream in(packed, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const auto found = [&](const std::string& path, std::size_t limit = kMuch) {
    try {
      (void)read_maybe_gzip(path, limit);
    } catch (const InputError& error) {
      return error.problem().found;
    }
    return std::string("nothing");
  };
  CHECK(found(folder.write("cut.gz", bytes.substr(0, bytes.size() / 2))) == "a file that was cut");
  std::string broken = bytes;
  broken[broken.size() / 2] = static_cast<char>(~broken[broken.size() / 2]);
  CHECK(found(folder.write("broken.gz", broken)) == "a broken file");
  CHECK(found(packed, 1000) == "a larger one");
  CHECK(found(folder.path() + "/none") == "no such file");
  CHECK(found(folder.path()) == "a directory");
}

}  // namespace lockstep
