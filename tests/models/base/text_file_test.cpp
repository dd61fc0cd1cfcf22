#include "models/base/text_file.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "models/base/input_error.hpp"
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

TEST_CASE("read_text_file: pipes and standard input are read to their end, up to the limit") {
  const test::TemporaryFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  auto* const before = std::signal(SIGPIPE, SIG_IGN);  // the reader may stop before the writer
  const auto while_writing = [&](const std::string& text, const auto& read) {
    std::thread writer([&] { std::ofstream(pipe) << text; });
    read();
    writer.join();
  };
  const std::string text(200'000, 'x');  // more than a pipe holds
  while_writing(text, [&] { CHECK(read_text_file(pipe) == text); });
  while_writing(text, [&] {
    CHECK_THROWS_WITH_AS(read_text_file(pipe, 1000),
                         (pipe + ": found more than 1000 bytes; allowed: a readable text file of "
                                 "at most 1000 bytes")
                             .c_str(),
                         InputError);
  });
  const int kept = dup(STDIN_FILENO);
  while_writing("{}", [&] {
    const int in = open(pipe.c_str(), O_RDONLY);
    dup2(in, STDIN_FILENO);
    CHECK(read_text_file("-") == "{}");
    close(in);
  });
  dup2(kept, STDIN_FILENO);
  close(kept);
  (void)std::signal(SIGPIPE, before);
}

TEST_CASE("read_text_file: a pipe that nobody writes to is an error, and no wait for ever") {
  const test::TemporaryFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(read_text_file(pipe),
                       (pipe + ": found a pipe that nobody writes to; allowed: a readable text "
                               "file of at most 16 MiB")
                           .c_str(),
                       InputError);
}

}  // namespace lockstep
