#include "tools/console/table.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <doctest/doctest.h>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/number_text.hpp"

using namespace lockstep;

TEST_CASE("significant: as many digits as asked, no exponent for everyday sizes") {
  CHECK(significant(0) == "0");
  CHECK(significant(6.7234) == "6.72");
  CHECK(significant(9.996) == "10.0");
  CHECK(significant(0.013149) == "0.0131");
  CHECK(significant(16384) == "16,384");
  CHECK(significant(-1234567.8) == "-1,234,568");
  CHECK(significant(1e-7) == "1e-07");
}

TEST_CASE("duration_text: the unit changes exactly where the next one starts") {
  CHECK(duration_text(12.3e-6) == "12.3 us");
  CHECK(duration_text(0.9994) == "999 ms");
  CHECK(duration_text(1) == "1.00 s");
  CHECK(duration_text(119.9) == "120 s");
  CHECK(duration_text(120) == "2.00 min");
  CHECK(duration_text(7200) == "2.00 h");
  CHECK(duration_text(172800) == "2.00 days");
  CHECK(duration_text(-7200) == "-2.00 h");
}

TEST_CASE("compact: thousands, millions, billions and trillions by letter") {
  CHECK(compact(4096) == "4,096");
  CHECK(compact(26500) == "26.5 k");
  CHECK(compact(1.624e6) == "1.62 M");
  CHECK(compact(15.6e12) == "15.6 T");
}

TEST_CASE("number_text: at most twelve digits, and the shortest text of them") {
  CHECK(number_text(0.1 + 0.2) == "0.3");
  CHECK(number_text(1.0 / 3) == "0.333333333333");
  CHECK(number_text(-0.0) == "0");
  CHECK(twelve_digits(0.1 + 0.2) == 0.3);
}

TEST_CASE("bar: eighth blocks in UTF-8, whole characters in ASCII") {
  CHECK(bar(0.5, 10, {.utf8 = true}) == "█████");
  CHECK(bar(0.0625, 10, {.utf8 = true}) == "▋");
  CHECK(bar(0.5, 10, {}) == "#####");
  CHECK(bar(0, 10, {}).empty());
  CHECK(text_width(bar(1, 10, {.utf8 = true})) == 10);
}

TEST_CASE("assumed_lines: each begins a line, and none is wider than the program's texts") {
  std::string words;
  while (words.size() < 300) words += "word ";
  const std::vector<std::string> assumptions{words, "short"};
  const std::string text = assumed_lines(assumptions, {});
  CHECK(text.starts_with("  assumed: word word"));
  CHECK(text.ends_with("\n  assumed: short\n"));
  std::istringstream lines(text);
  int wide = 0;
  for (std::string line; std::getline(lines, line);) wide = std::max(wide, text_width(line));
  CHECK(wide <= kTextColumns);
  CHECK(wide > kTextColumns - 6);
  CHECK(assumed_lines({}, {}).empty());
}

TEST_CASE("wrap: no line's text is wider than asked, and later lines are indented") {
  CHECK(wrap("one two three four", 9, 2) == "one two\n  three\n  four");
  CHECK(wrap("short", 9, 2) == "short");
  CHECK(wrap("", 9, 2).empty());
  CHECK(wrap("one two three four", 12, 6) == "one two\n      three\n      four");
  CHECK(wrap("one two three", 12, 2, 6) == "one\n  two three");
  CHECK(wrap("  one", 12, 2) == "one");
  CHECK(wrap("a-word-that-is-wider it", 12, 2) == "a-word-that-is-wider\n  it");
}

TEST_CASE("wrap: no line of a random text passes the width, and none could take the next word") {
  constexpr std::string_view kLetters = "abcdefgh-.,()0123456789";
  std::mt19937 random(7);
  const auto below = [&random](std::uint32_t end) { return static_cast<int>(random() % end); };
  for (int run = 0; run < 200; ++run) {
    const int width = 30 + below(71), indent = below(12), at = below(16);
    CAPTURE(width);
    CAPTURE(indent);
    CAPTURE(at);
    std::string text;
    for (int word = 0; word < 60; ++word) {
      if (word > 0) text += ' ';
      for (int letters = 1 + below(14); letters > 0; --letters)
        text += kLetters[random() % kLetters.size()];
    }
    std::istringstream lines(std::string(static_cast<std::size_t>(at), '>') +
                             wrap(text, width, indent, at));
    std::string joined, line;
    int before = 0;
    for (bool first = true; std::getline(lines, line); first = false) {
      CHECK(text_width(line) <= width);
      const std::string words = line.substr(static_cast<std::size_t>(first ? at : indent));
      CHECK(words.front() != ' ');
      const bool fits = before + 1 + static_cast<int>(words.find(' ')) <= width;
      if (!first && words.find(' ') != std::string::npos) CHECK_FALSE(fits);
      joined += (first ? "" : " ") + words;
      before = text_width(line);
    }
    CHECK(joined == text);
  }
}

TEST_CASE("TextTable: numbers right, text left, no blanks at line ends") {
  TextTable table({{"name", TextTable::Align::left}, {"GiB"}, {"note", TextTable::Align::left}});
  table.add({"a", "1.5", "x"});
  table.add({"long", "100", ""});
  CHECK(table.text({}, 1) ==
        " name  GiB  note\n"
        " a     1.5  x\n"
        " long  100\n");
}

TEST_CASE("TextTable: on a narrow terminal bars go, then text is cut, then columns go") {
  TextTable table({{"layout", TextTable::Align::left}, {"step"}, {"", TextTable::Align::left}});
  table.add({"tensor 8 pipeline 16 data 128", "6.94", "########"});
  const auto at = [&](int columns) { return table.text({.columns = columns}, 0); };
  CHECK(at(0) == table.text({}, 0));
  CHECK(at(45) == table.text({}, 0));
  CHECK(at(44) == "layout                         step\ntensor 8 pipeline 16 data 128  6.94\n");
  CHECK(at(30) == "layout                    step\ntensor 8 pipeline 16 d..  6.94\n");
  CHECK(table.text({.utf8 = true, .columns = 30}, 0) ==
        "layout                    step\ntensor 8 pipeline 16 da…  6.94\n");
  TextTable numbers({{"name", TextTable::Align::left}, {"one"}, {"two"}});
  numbers.add({"a name that is long enough", "12345678", "12345678"});
  CHECK(numbers.text({.columns = 30}, 0) ==
        "name                   one\na name that is..  12345678\n");
}

TEST_CASE("TextTable: a last column of sentences goes on below itself") {
  TextTable table({{"name", TextTable::Align::left}, {"about", TextTable::Align::left, true}});
  table.add({"a", "thirty columns take this much of it"});
  table.add({"beta", "short"});
  const std::string whole =
      " name  about\n"
      " a     thirty columns take this much of it\n"
      " beta  short\n";
  CHECK(table.text({}, 1) == whole);
  CHECK(table.text({.columns = 42}, 1) == whole);
  CHECK(table.text({.columns = 31}, 1) ==
        " name  about\n"
        " a     thirty columns take this\n"
        "       much of it\n"
        " beta  short\n");
  TextTable wide({{"name", TextTable::Align::left}, {"about", TextTable::Align::left, true}});
  std::string words;
  for (int i = 0; i < 60; ++i) words += "word ";
  wide.add({"a", words});
  std::istringstream lines(wide.text({}));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) CHECK(text_width(line) <= 100);
  CHECK(count == 5);  // the title, and 60 words of which 18 are in a line of 92
}

TEST_CASE("TextTable: a title that is wider than its cells goes over two lines") {
  TextTable table({{"cluster.nodes"}, {"tokens/s/GPU"}, {"whole training"}, {"n"}});
  table.add({"1024", "148", "74.5 days", "1"});
  CHECK(table.width(0) == 13 + 2 + 12 + 2 + 14 + 2 + 1);
  table.fold_titles();
  CHECK(table.text({}, 0) ==
        "cluster.  tokens      whole\n"
        "   nodes  /s/GPU   training  n\n"
        "    1024     148  74.5 days  1\n");
  CHECK(table.width(0) == 8 + 2 + 6 + 2 + 9 + 2 + 1);
}

TEST_CASE("text_with_words: words below a row are broken where tables are") {
  TextTable table({{"gain"}});
  table.add({"+1.0 %"});
  table.add({"+0.5 %"});
  std::string words = "word";
  for (int i = 1; i < 21; ++i) words += " word";  // 5 x 21 - 1 columns behind 4 blanks
  const std::array<std::string, 2> below{words, "short"};
  const std::string text = text_with_words(table, below, {});
  std::istringstream lines(text);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) CHECK(text_width(line) <= 100);
  CHECK(count == 6);
  CHECK(text.ends_with(" word\n      word word\n  +0.5 %\n    short\n"));
}

TEST_CASE("csv_line: quotes what RFC 4180 wants quoted") {
  const std::array<std::string, 4> cells{"plain", "a,b", "say \"x\"", "two\nlines"};
  CHECK(csv_line(cells).str() == "plain,\"a,b\",\"say \"\"x\"\"\",\"two\nlines\"\n");
}

TEST_CASE("TextStyle: escape codes only where colours are wanted") {
  CHECK(TextStyle{}.bold("x") == "x");
  CHECK(TextStyle{.utf8 = false, .colour = true}.bold("x") == "\033[1mx\033[0m");
}
