#include "models/base/output_file.hpp"

#include <array>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <zlib.h>

#include "models/base/input_error.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace lockstep;
namespace fs = std::filesystem;

namespace {

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::size_t files_in(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("an output file appears whole, at commit, and replaces what was there") {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("out.txt", "old");
  OutputFile file(path);
  file.write("new ");
  file.write("text");
  CHECK(contents(path) == "old");
  file.commit();
  CHECK(contents(path) == "new text");
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("an output file that is given up leaves no trace") {
  const test::TemporaryFolder folder;
  {
    OutputFile(folder.path() + "/out.txt").write("half");
  }
  CHECK(files_in(folder.path()) == 0);
}

TEST_CASE("a name that ends in .gz is compressed, with the same bytes every time") {
  const test::TemporaryFolder folder;
  for (const char* name : {"/a.gz", "/b.gz"}) {
    OutputFile file(folder.path() + name);
    file.write(std::string(100000, 'x'));
    file.commit();
  }
  CHECK(contents(folder.path() + "/a.gz") == contents(folder.path() + "/b.gz"));
  CHECK(contents(folder.path() + "/a.gz").size() < 1000);
  gzFile in = gzopen((folder.path() + "/a.gz").c_str(), "rb");
  REQUIRE(in != nullptr);
  std::array<char, 200000> buffer{};
  CHECK(gzread(in, buffer.data(), buffer.size()) == 100000);
  gzclose(in);
}

TEST_CASE("an output file that cannot be made says why") {
  CHECK_THROWS_WITH_AS(
      OutputFile("/nonexistent/out.txt"),
      "/nonexistent/out.txt: found No such file or directory; allowed: a file that "
      "can be opened",
      InputError);
  CHECK_THROWS_WITH_AS(OutputFile("/"),
                       "/: found Is a directory; allowed: a file that can be opened", InputError);
}

TEST_CASE("a device is written to, not replaced") {
  OutputFile file("/dev/null");
  file.write("gone");
  file.commit();
  CHECK(fs::is_character_file("/dev/null"));
}
