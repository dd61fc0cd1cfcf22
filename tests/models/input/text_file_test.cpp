#include "models/input/text_file.hpp"

#include <doctest/doctest.h>
#include <string>

#include "models/input/input_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {

TEST_CASE("read_text_file: the bytes as they are, up to the limit") {
  const test::TemporaryFolder folder;
  const std::string bytes("a\0\r\nb", 5);
  CHECK(read_text_file(folder.write("a.json", bytes)) == bytes);
  CHECK(read_text_file(folder.write("empty.json", "")).empty());

  const std::string file = folder.write("ten.json", "0123456789");
  CHECK(read_text_file(file, 10).size() == 10);
  CHECK_THROWS_WITH_AS(
      read_text_file(file, 9),
      (file + ": found more than 9 bytes; allowed: a readable text file of at most 9 bytes")
          .c_str(),
      InputError);
}

TEST_CASE("read_text_file: 16 MiB and one byte is too much") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("huge.json", std::string(kInputFileLimit + 1, ' '));
  CHECK_THROWS_WITH_AS(
      read_text_file(file),
      (file + ": found more than 16777216 bytes; allowed: a readable text file of at most 16 MiB")
          .c_str(),
      InputError);
}

TEST_CASE("read_text_file: a missing file, a folder and a device are named for what they are") {
  const test::TemporaryFolder folder;
  const std::string rule = "; allowed: a readable text file of at most 16 MiB";
  const std::string missing = folder.path() + "/missing.json";
  CHECK_THROWS_WITH_AS(read_text_file(missing), (missing + ": found no such file" + rule).c_str(),
                       InputError);
  CHECK_THROWS_WITH_AS(read_text_file(folder.path()),
                       (folder.path() + ": found a directory" + rule).c_str(), InputError);
  CHECK_THROWS_WITH_AS(read_text_file("/dev/zero"),
                       ("/dev/zero: found something that is no regular file" + rule).c_str(),
                       InputError);
  CHECK_THROWS_WITH_AS(read_text_file(""), ("(empty file name): found no such file" + rule).c_str(),
                       InputError);
  const std::string below_a_file = folder.write("a.json", "{}") + "/b.json";
  CHECK_THROWS_WITH_AS(read_text_file(below_a_file),
                       (below_a_file + ": found no such file" + rule).c_str(), InputError);
}

}  // namespace lockstep
