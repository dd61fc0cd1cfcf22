// What an error says to type instead can be typed so, and is answered.
#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"
#include "tools/console/options.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

using Words = std::vector<std::string>;

/// The words of a line as a shell takes them: parted by blanks, quotes and braces in quotes.
Words shell_words(std::string_view line) {
  Words out;
  bool inside = false, open = false;
  for (const char c : line) {
    if (c == '"') {
      inside = !inside;
      continue;
    }
    if (c == ' ' && !inside) {
      open = false;
      continue;
    }
    if (!open) out.emplace_back();
    open = true;
    out.back() += c;
  }
  return out;
}

/// What stands in the line between the words that begin and end it; empty: it lacks one of them.
std::string between(const std::string& line, std::string_view begin, std::string_view end) {
  const std::size_t from = line.find(begin);
  if (from == std::string::npos) return {};
  const std::size_t at = from + begin.size();
  const std::size_t to = line.find(end, at);
  return to == std::string::npos ? std::string() : line.substr(at, to - at);
}

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const Words kModel{"--model", "llama3_8b"}, kMachine{"--node", "dgx_h100"};

}  // namespace

TEST_CASE("hints: what is to be typed for an option that there is not is answered") {
  Words hinted{"--gpu", "--lora", "--precision", "--batch"};
  for (const Command* command : commands()) {
    for (const WordHint& hint : command->spec->hints) hinted.emplace_back(hint.option);
  }
  CHECK(hinted.size() > 8);
  for (const std::string& option : hinted) {
    CAPTURE(option);
    const Words question = joined({"run"}, option == "--gpu" ? kModel : joined(kModel, kMachine));
    const Ran wrong = lockstep_with(joined(question, {option, "1"}));
    CHECK(wrong.exit == Exit::bad_input);
    std::string instead = between(wrong.err, "Did you mean ", "?");
    REQUIRE_MESSAGE(!instead.empty(), wrong.err);
    instead = instead.substr(0, instead.find(", "));  // behind it what it is
    const Ran right = lockstep_with(joined(question, shell_words(instead)));
    CHECK_MESSAGE(right.exit == Exit::ok, right.err);
  }
}

TEST_CASE("hints: the example of a scenario without anything is one that is answered") {
  const TemporaryFolder folder;
  const auto asked = [&](const std::string& text) {
    return lockstep_with({"run", folder.write("mine.json", text)});
  };
  const Ran wrong = asked("{}");
  CHECK(wrong.exit == Exit::bad_input);
  const std::string example = between(wrong.err, "such as ", "\n");
  REQUIRE_MESSAGE(!example.empty(), wrong.err);
  const Ran right = asked(example);
  CHECK_MESSAGE(right.exit == Exit::ok, right.err);
}

TEST_CASE("hints: the example of a run without anything is one that is answered") {
  const Words question = joined(joined({"run"}, kModel), kMachine);
  for (const char* set : {"run={}", "run=true"}) {
    CAPTURE(set);
    const Ran wrong = lockstep_with(joined(question, {"--set", set}));
    CHECK(wrong.exit == Exit::bad_input);
    const std::string example = between(wrong.err, "such as ", "\n");
    REQUIRE_MESSAGE(!example.empty(), wrong.err);
    const Ran right = lockstep_with(joined(question, {"--set", "run=" + example}));
    CHECK_MESSAGE(right.exit == Exit::ok, right.err);
    CHECK(right.out.find("oodput") != std::string::npos);
  }
}
