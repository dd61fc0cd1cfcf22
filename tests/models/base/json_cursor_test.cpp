#include "models/base/json_cursor.hpp"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {
namespace {

JsonCursor parse(std::string_view text, const std::vector<std::string>& sets = {}) {
  return JsonCursor::parse("p.json", text, JsonStyle::plain, sets);
}
JsonCursor parse_preset(std::string_view text) {
  return JsonCursor::parse("p.json", text, JsonStyle::sourced);
}

/// The whole line that the call throws; "fine" if it doesn't.
template <class Call>
std::string complaint_of(Call call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "fine";
}

}  // namespace

TEST_CASE("JsonCursor: an integer may be written as 1e3, and keeps its range on both sides") {
  const JsonCursor root = parse(R"([3, 1e3, 4.0, 4.5, 2, 1001, -1e300, "3", true, null, 1e18])");
  const std::vector<JsonCursor> values = root.elements(20);
  CHECK(values[0].integer(3, 1000) == 3);
  CHECK(values[1].integer(3, 1000) == 1000);
  CHECK(values[2].integer(3, 1000) == 4);
  for (std::size_t i = 3; i < values.size(); ++i) {
    CAPTURE(i);
    CHECK(complaint_of([&] { (void)values[i].integer(3, 1000); }) ==
          "p.json#/" + std::to_string(i) + ": found " + values[i].found() +
              "; allowed: a whole number from 3 to 1000");
  }
}

TEST_CASE("JsonCursor: numbers keep their interval, open or closed") {
  const auto number = [](std::string_view text, const Interval& allowed) {
    const JsonCursor root = parse(text);
    return complaint_of([&] { (void)root.number(allowed); });
  };
  CHECK(number("0", {0, 1}) == "fine");
  CHECK(number("1", {0, 1}) == "fine");
  CHECK(number("1.0000001", {0, 1}) == "p.json: found 1.0000001; allowed: a number from 0 to 1");
  CHECK(number("0", {0, 1, true}) == "p.json: found 0; allowed: a number above 0, at most 1");
  CHECK(number("1e300", {0}) == "p.json: found 1e+300; allowed: a number of at least 0");
  CHECK(number("[]", {0, 1}) == "p.json: found an array; allowed: a number from 0 to 1");
  CHECK(number("true", {0, 1}) == "p.json: found true; allowed: a number from 0 to 1");
}

TEST_CASE("JsonCursor: quantities are numbers in base units or text with a unit") {
  static constexpr Interval kAllowed{0, 10};
  CHECK(parse("2.5").seconds(kAllowed) == Seconds{2.5});
  CHECK(parse("\"2 ms\"").seconds(kAllowed) == Seconds{2e-3});
  CHECK(parse("\"400 Gb/s\"").data_rate({0, 1e12}) == gigabits_per_second(400));
  CHECK(parse("\"80 GiB\"").bytes({0, 1e12}) == gibibytes(80));
  CHECK(parse("\"700 W\"").watts({0, 1e4}) == Watts{700});
  CHECK(complaint_of([] { (void)parse("\"11 s\"").seconds(kAllowed); }) ==
        "p.json: found \"11 s\"; allowed: a time from 0 s to 10 s");
  CHECK(complaint_of([] { (void)parse("\"11 sec\"").seconds(kAllowed); }) ==
        "p.json: found \"11 sec\"; allowed: a number with a unit of time: s, ms, us, ns, min, h, "
        "d, weeks, months");
  CHECK(complaint_of([] { (void)parse("{}").seconds(kAllowed); }) ==
        "p.json: found an object; allowed: a number of seconds or a time such as \"2.5 us\"");
  CHECK(complaint_of([] { (void)parse("\"150 %\"").quantity(Dimension::share, {0, 1}); }) ==
        "p.json: found \"150 %\"; allowed: a number from 0 to 1");
}

TEST_CASE("JsonCursor: a choice names all of them and the nearest") {
  constexpr std::array<std::string_view, 2> kNames{"spray", "ecmp"};
  CHECK(parse("\"ecmp\"").choice(kNames) == 1);
  CHECK(complaint_of([&] { (void)parse("\"ecpm\"").choice(kNames); }) ==
        "p.json: found \"ecpm\"; allowed: spray, ecmp. Did you mean \"ecmp\"?");
  CHECK(complaint_of([&] { (void)parse("3").choice(kNames); }) ==
        "p.json: found 3; allowed: spray, ecmp");
}

TEST_CASE("JsonCursor: finish complains about the keys that nobody asked for") {
  const JsonCursor root = parse(R"({"levels": 2, "lebels": 3, "other": 4})");
  CHECK(root.find("levels")->integer(1, 9) == 2);
  CHECK_FALSE(root.find("ports").has_value());
  CHECK(
      complaint_of([&] { root.finish(); }) ==
      "p.json#/lebels: found the unknown key \"lebels\", and also /other; allowed: levels, ports. "
      "Did you mean \"levels\"?");
  (void)root.find("lebels");
  (void)root.find("other");
  CHECK(complaint_of([&] { root.finish(); }) == "fine");
}

TEST_CASE("JsonCursor: a missing key points at one that is spelt nearly like it") {
  CHECK(
      complaint_of([] { (void)parse(R"({"tokns": 3})").at("tokens"); }) ==
      "p.json: found an object without \"tokens\" but with \"tokns\"; allowed: an object with it");
  CHECK(complaint_of([] { (void)parse(R"({"a": {}})").at("a").at("tokens"); }) ==
        "p.json#/a: found an object without \"tokens\"; allowed: an object with it");
  CHECK(complaint_of([] { (void)parse("[]").at("tokens"); }) ==
        "p.json: found an array; allowed: an object");
}

TEST_CASE("JsonCursor: all missing keys are named at once, after unknown ones") {
  const auto read = [](const char* text) {
    return complaint_of([&] {
      const JsonCursor root = parse(text);
      root.read_whole([&] {
        CHECK(root.at("sequences").integer(1, 1000) >= 1);
        CHECK(root.at("tokens").integer(1, 10'000) >= 1);
        (void)root.find("micro");
        if (const auto nodes = root.find("nodes")) (void)nodes->integer(1, 9);
        root.finish();
        return true;
      });
    });
  };
  CHECK(read(R"({"sequences": 2, "tokens": 3})") == "fine");
  CHECK(read(R"({"micro": 1})") ==
        "p.json: found an object without \"sequences\" and \"tokens\"; allowed: an object with "
        "them, such as {\"sequences\":256,\"tokens\":4096}");
  CHECK(read(R"({"sequences": 2, "token": 3})") ==
        "p.json#/token: found the unknown key \"token\"; allowed: sequences, tokens, micro, nodes. "
        "Did you mean \"tokens\"?");
  // What is wrong beside an example may be right beside the value that is missing.
  CHECK(read(R"({"sequences": 2, "nodes": 20})") ==
        "p.json: found an object without \"tokens\"; allowed: an object with it, such as "
        "{\"tokens\":4096}");
}

TEST_CASE("JsonCursor: a missing key without an example stands for what its reader takes") {
  constexpr std::array<std::string_view, 2> kColours{"red", "blue"};
  const std::string complaint = complaint_of([&] {
    const JsonCursor root = parse(R"({"size": 3})");
    root.read_whole([&] {
      CHECK(root.at("colour").choice(kColours) == 0);
      CHECK(root.at("tall").boolean());
      CHECK(root.at("share").number({0.25, 0.5}) == 0.25);
      CHECK(root.at("lasts").seconds({0, 10}) == Seconds{1});
      CHECK(root.at("short").seconds({0, 1e-3}) == Seconds{1e-6});
      CHECK(root.at("way").string() == "...");
      for (const JsonCursor& part : root.at("parts").elements(9)) {
        CHECK(part.at("width").integer(2, 9) == 2);
        part.finish();
      }
      (void)root.find("size");
      root.finish();
      return true;
    });
  });
  CHECK(complaint ==
        "p.json: found an object without \"colour\", \"tall\", \"share\", \"lasts\", \"short\", "
        "\"way\" and \"parts\"; allowed: an object with them, such as "
        "{\"colour\":\"red\",\"tall\":true,\"share\":0.25,\"lasts\":\"1 s\",\"short\":\"1 us\","
        "\"way\":\"...\",\"parts\":[{\"width\":2}]}");
}

TEST_CASE("JsonCursor: what else is wrong waits until no key is missing") {
  const auto read = [](const char* text) {
    return complaint_of([&] {
      const JsonCursor root = parse(text);
      root.read_whole([&]() -> bool {
        const JsonCursor a = root.at("a"), b = root.at("b");
        (void)a.at("low").integer(1, 5);
        a.finish();
        // Readers within one another tell of their keys together.
        (void)b.read_whole([&] { return b.at("high").integer(1, 5); });
        b.finish();
        root.finish();
        throw InputError({"p.json", "/a", "6", "less", ""});
      });
    });
  };
  CHECK(read(R"({"a": {"low": 1}, "b": {"high": 2}})") == "p.json#/a: found 6; allowed: less");
  CHECK(read(R"({"a": {}, "b": {}})") ==
        "p.json: found an object without \"/a/low\" and \"/b/high\"; allowed: an object with them, "
        "such as {\"/a/low\":1,\"/b/high\":1}");
  CHECK(read(R"({"a": {}, "b": {"hihg": 3}})") ==
        "p.json#/b/hihg: found the unknown key \"hihg\"; allowed: high. Did you mean \"high\"?");
}

TEST_CASE("JsonCursor: pointers go through arrays, and escape keys") {
  const JsonCursor root = parse(R"({"a/b": [{"c": "x"}]})");
  const JsonCursor leaf = root.at("a/b").elements(5)[0].at("c");
  CHECK(leaf.pointer() == "/a~1b/0/c");
  CHECK(complaint_of([&] { (void)leaf.boolean(); }) ==
        "p.json#/a~1b/0/c: found \"x\"; allowed: true or false");
  CHECK(complaint_of([&] { (void)root.at("a/b").elements(0); }) ==
        "p.json#/a~1b: found an array; allowed: an array of at most 0 elements");
}

TEST_CASE("JsonCursor: unknown keys are named all at once, of all objects that are read whole") {
  const JsonCursor one = parse(R"({"levels": 1, "lebels": 2, "x": 3})");
  (void)one.at("levels").integer(0, 9);
  CHECK(complaint_of([&] { one.finish(); }) ==
        "p.json#/lebels: found the unknown key \"lebels\", and also /x; allowed: levels. "
        "Did you mean \"levels\"?");
  const JsonCursor root = parse(R"({"a": {"levels": 1, "x": 2}, "b": {"levles": 3}, "yonder": 4})");
  const auto read = [&] {
    (void)root.at("a").at("levels").integer(0, 9);
    root.at("a").finish();
    (void)root.at("b").find("levels");
    root.at("b").finish();
    root.finish();
    return 0;
  };
  CHECK(complaint_of([&] { (void)root.read_whole(read); }) ==
        "p.json#/a/x: found the unknown key \"x\", and also /b/levles (\"levels\"?), /yonder; "
        "allowed: levels");
  // They come before a wrong value that is read later, as one of them alone does.
  CHECK(complaint_of([&] {
          (void)root.read_whole([&] {
            (void)root.find("a");
            (void)root.find("b");
            root.finish();
            return root.at("a").integer(0, 9);
          });
        }) == "p.json#/yonder: found the unknown key \"yonder\"; allowed: a, b");
}

namespace {

/// Of an object whose reader takes each kind of value.
int read_every_kind(const JsonCursor& root) {
  constexpr std::array<std::string_view, 2> kNames{"spray", "ecmp"};
  if (const auto of = root.find("levels")) (void)of->integer(1, 9);
  if (const auto of = root.find("share")) (void)of->number({0, 1});
  if (const auto of = root.find("time")) (void)of->seconds({0, 10});
  if (const auto of = root.find("on")) (void)of->boolean();
  if (const auto of = root.find("kind")) (void)of->choice(kNames);
  if (const auto of = root.find("name")) (void)of->string();
  if (const auto of = root.find("list")) (void)of->elements(9);
  if (const auto of = root.find("in")) {
    if (const auto inner = of->find("levels")) (void)inner->integer(1, 9);
    of->finish();
  }
  root.finish();
  return 0;
}

std::string complaint_of_every_kind(std::string_view text) {
  const JsonCursor root = parse(text);
  return complaint_of([&] { (void)root.read_whole([&] { return read_every_kind(root); }); });
}

}  // namespace

TEST_CASE("JsonCursor: wrong values of a document are told at once, each as if it were alone") {
  const std::vector<std::string> members{R"("levels": 0)",           R"("share": "x")",
                                         R"("time": "11 s")",        R"("on": 1)",
                                         R"("kind": "ecpm")",        R"("name": 2)",
                                         R"("list": {"a": [1, 2]})", R"("in": {"levels": 10})"};
  std::string all, lines;
  for (const std::string& member : members) {
    const std::string alone = complaint_of_every_kind("{" + member + "}");
    CAPTURE(alone);
    CHECK(alone.starts_with("p.json#/"));
    CHECK(alone.find('\n') == std::string::npos);
    all += (all.empty() ? "" : ", ") + member;
    lines += (lines.empty() ? "" : "\n") + alone;
  }
  CHECK(complaint_of_every_kind("{" + all + "}") == lines);
  CHECK(complaint_of_every_kind(R"({"levels": 0, "in": 3})") ==
        "p.json#/levels: found 0; allowed: a whole number from 1 to 9\n"
        "p.json#/in: found 3; allowed: an object");
}

TEST_CASE("JsonCursor: beside a wrong value unknown keys are told, but not where a name decides") {
  CHECK(complaint_of_every_kind(R"({"levels": 0, "in": {"x": 1}})") ==
        "p.json#/levels: found 0; allowed: a whole number from 1 to 9\n"
        "p.json#/in/x: found the unknown key \"x\"; allowed: levels");
  CHECK(complaint_of_every_kind(R"({"kind": "ecpm", "x": 1})") ==
        "p.json#/kind: found \"ecpm\"; allowed: spray, ecmp. Did you mean \"ecmp\"?");
}

TEST_CASE("JsonCursor: a value that is wrong only beside a wrong one is not told with it") {
  const auto read = [](const JsonCursor& root) {
    const int members = root.at("members").integer(1, 9);
    (void)root.at("from").integer(0, members - 1);
    return root.at("levels").integer(1, 9);
  };
  const auto complaint = [&](std::string_view text) {
    const JsonCursor root = parse(text);
    return complaint_of([&] { (void)root.read_whole([&] { return read(root); }); });
  };
  CHECK(complaint(R"({"members": 0, "from": 7, "levels": 0})") ==
        "p.json#/members: found 0; allowed: a whole number from 1 to 9\n"
        "p.json#/levels: found 0; allowed: a whole number from 1 to 9");
  CHECK(complaint(R"({"members": 4, "from": 7, "levels": 0})") ==
        "p.json#/from: found 7; allowed: a whole number from 0 to 3\n"
        "p.json#/levels: found 0; allowed: a whole number from 1 to 9");
}

TEST_CASE(
    "JsonCursor: a bound that is the same for small values in a wrong one's place is not told") {
  const auto read = [](const JsonCursor& root) {
    const int nodes = root.at("nodes").integer(1, 1000);
    (void)root.at("count").integer(1, std::max(1, nodes - 1));
    const double time = root.at("time").number({0, 1000});
    (void)root.at("wait").number({0, std::max(2.0, time)});
    return root.at("levels").integer(1, 9);
  };
  const JsonCursor root = parse(R"({"nodes": 0, "count": 8, "time": -1, "wait": 50, "levels": 0})");
  CHECK(complaint_of([&] { (void)root.read_whole([&] { return read(root); }); }) ==
        "p.json#/nodes: found 0; allowed: a whole number from 1 to 1000\n"
        "p.json#/time: found -1; allowed: a number from 0 to 1000\n"
        "p.json#/levels: found 0; allowed: a whole number from 1 to 9");
}

TEST_CASE("JsonCursor: nothing stands for a wrong value where none is allowed") {
  const JsonCursor root = parse(R"({"levels": 0, "place": 3, "share": 3, "last": 0})");
  std::vector<double> places;
  const auto read = [&] {
    (void)root.at("levels").integer(1, 9);
    places.push_back(root.at("place").integer(0, -1));
    places.push_back(root.at("share").number({1, 0}));
    return root.at("last").integer(1, 9);
  };
  CHECK(complaint_of([&] { (void)root.read_whole(read); }) ==
        "p.json#/levels: found 0; allowed: a whole number from 1 to 9");
  CHECK(places.empty());
}

TEST_CASE(
    "JsonCursor: of a document with very many wrong values the first thousand are looked for") {
  std::string text = "[0";
  for (int i = 1; i < 50'000; ++i) text += ", 0";
  const JsonCursor root = parse(text + "]");
  int readings = 0, reached = 0;
  const std::string complaint = complaint_of([&] {
    (void)root.read_whole([&] {
      ++readings;
      for (const JsonCursor& each : root.elements(50'000)) {
        (void)each.integer(1, 9);
        ++reached;
      }
      return 0;
    });
  });
  CHECK(std::ranges::count(complaint, '\n') == 20);
  CHECK(
      complaint.ends_with("#/19: found 0; allowed: a whole number from 1 to 9\n"
                          "and at least 980 more"));
  CHECK(readings == 3);
  CHECK(reached == 2000);
}

TEST_CASE("JsonCursor: a large document is not read a hundred times for its rules") {
  const auto readings_of = [](int values) {
    std::string text = "[{\"x\": 0}";
    for (int i = 1; i < values; ++i) text += ", {\"x\": 0}";
    const JsonCursor root = parse(text + "]");
    int readings = 0;
    (void)complaint_of([&] {
      (void)root.read_whole([&] {
        ++readings;
        for (const JsonCursor& each : root.elements(1'000'000)) {
          if (const auto x = each.find("x")) x->fail("none");
        }
        return 0;
      });
    });
    return readings;
  };
  // Once, and then without each of them in turn, until none is left to break the rule.
  CHECK(readings_of(5) == 1 + 5 + 1);
  CHECK(readings_of(1000) == 1 + 100);
  CHECK(readings_of(50'000) == 1 + 9);
}

TEST_CASE("JsonCursor: a rule about a wrong value is not told, a type that no rule needs is") {
  const auto complaint = [](std::string_view text) {
    const JsonCursor root = parse(text);
    return complaint_of([&] {
      (void)root.read_whole([&] {
        const JsonCursor sizes = root.at("sizes");
        const int most = sizes.at("to").integer(1, 99);
        if (most < sizes.at("from").integer(1, 99)) sizes.fail("\"to\" at least \"from\"");
        if (!root.at("of").is_string()) root.at("of").fail_type("a name or an object");
        return 0;
      });
    });
  };
  CHECK(complaint(R"({"sizes": {"from": 8, "to": 0}, "of": "x"})") ==
        "p.json#/sizes/to: found 0; allowed: a whole number from 1 to 99");
  CHECK(complaint(R"({"sizes": {"from": 1, "to": 0}, "of": 5})") ==
        "p.json#/sizes/to: found 0; allowed: a whole number from 1 to 99\n"
        "p.json#/of: found 5; allowed: a name or an object");
}

TEST_CASE("JsonCursor: bounds made of a missing key are not held against a value") {
  const JsonCursor root = parse(R"({"cluster": 5, "first": 12, "levels": 0})");
  const auto read = [&] {
    const int nodes = root.at("cluster").at("nodes").integer(1, 99);
    (void)root.at("first").integer(0, nodes - 1);
    return root.at("levels").integer(1, 9);
  };
  CHECK(complaint_of([&] { (void)root.read_whole(read); }) ==
        "p.json#/cluster: found 5; allowed: an object, such as "
        "{\"node\":\"dgx_h100\",\"nodes\":4}\n"
        "p.json#/levels: found 0; allowed: a whole number from 1 to 9");
}

TEST_CASE("JsonCursor: what a wrong object would have had is not missed, nor held against others") {
  // Every other node from the second on: 2 of 4 as of 5.
  const JsonCursor root = parse(R"({"cluster": 5, "count": 4, "levels": 0, "own": {}})");
  const auto read = [&] {
    const JsonCursor cluster = root.at("cluster");
    const int nodes = cluster.at("nodes").integer(1, 99);
    (void)root.at("count").integer(1, (nodes - 2) / 2 + 1);
    (void)root.at("levels").integer(1, 9);
    if (!cluster.find("seed")) (void)root.at("own").at("seed").integer(1, 9);
    return nodes;
  };
  CHECK(complaint_of([&] { (void)root.read_whole(read); }) ==
        "p.json#/cluster: found 5; allowed: an object, such as "
        "{\"node\":\"dgx_h100\",\"nodes\":4}\n"
        "p.json#/levels: found 0; allowed: a whole number from 1 to 9");
}

TEST_CASE("JsonCursor: behind a rule only values that cannot depend on it are told") {
  const JsonCursor root = parse(R"({"batch": {"micro": 5, "tokens": 0}, "in": {"levels": 0}})");
  const auto read = [&] {
    const JsonCursor batch = root.at("batch");
    if (const auto micro = batch.find("micro")) micro->fail("a divisor of 12");
    (void)batch.at("tokens").integer(1, 9);
    return root.at("in").at("levels").integer(1, 9);
  };
  CHECK(complaint_of([&] { (void)root.read_whole(read); }) ==
        "p.json#/batch/micro: found 5; allowed: a divisor of 12\n"
        "p.json#/in/levels: found 0; allowed: a whole number from 1 to 9");
  // The document is as it was.
  CHECK(root.at("batch").at("micro").integer(1, 9) == 5);
  CHECK(root.at("in").at("levels").found() == "0");
}

TEST_CASE("JsonCursor: in a preset a value may sit beside its source") {
  const JsonCursor root = parse_preset(
      R"({"about": "x", "source": "s", "a": {"value": 3, "source": "s", "note": "n"}, "b": 4})");
  CHECK(root.at("a").integer(0, 9) == 3);
  CHECK(root.at("a").pointer() == "/a/value");
  CHECK(root.at("b").integer(0, 9) == 4);
  CHECK(complaint_of([&] { root.finish(); }) == "fine");
  CHECK(complaint_of([] {
          (void)parse_preset(R"({"a": {"value": 3, "sorce": "s"}})").find("a");
        }) == "p.json#/a/sorce: found the unknown key \"sorce\"; allowed: value");
  // A scenario has no such wrapping.
  CHECK(complaint_of([] { (void)parse(R"({"a": {"value": 3}})").at("a").integer(0, 9); }) ==
        "p.json#/a: found an object; allowed: a whole number from 0 to 9");
}

TEST_CASE("--set: changes, adds and refines, by dotted path or pointer") {
  const std::string_view text = R"({"a": {"b": 1}, "fabric": "roce", "list": [1, 2]})";
  CHECK(parse(text, {"a.b=2"}).at("a").at("b").integer(0, 9) == 2);
  CHECK(parse(text, {"/a/b=2"}).at("a").at("b").integer(0, 9) == 2);
  CHECK(parse(text, {"a.c.d=true"}).at("a").at("c").at("d").boolean());
  CHECK(parse(text, {"list.1=7"}).at("list").elements(9)[1].integer(0, 9) == 7);
  CHECK(parse(text, {"/x~1y=7"}).at("x/y").integer(0, 9) == 7);
  CHECK(parse(text, {"a=no json"}).at("a").string() == "no json");
  CHECK(parse(text, {"a=x=y"}).at("a").string() == "x=y");
  CHECK(parse(text, {"a.b=2", "a.b=3"}).at("a").at("b").integer(0, 9) == 3);
  const JsonCursor refined = parse(text, {"fabric.levels=3"}).at("fabric");
  CHECK(refined.at("preset").string() == "roce");
  CHECK(refined.at("levels").integer(0, 9) == 3);
}

TEST_CASE("--set: a number where a string belongs is taken as written") {
  CHECK(parse("{}", {"release=24.10"}).at("release").string() == "24.10");
  CHECK(complaint_of([] { (void)parse(R"({"release": 24.10})").at("release").string(); }) ==
        "p.json#/release: found 24.1; allowed: a string");
}

TEST_CASE("--set: a number without a unit is told as it was read, once") {
  const JsonCursor root = parse(R"({"limits": {"time": 3, "power": "9 W", "rate": 5}})",
                                {"limits.time=90", "limits.power=5", "limits.share=0.5",
                                 "limits.rate=\"1 GB/s\"", "limits.wait=0"});
  const JsonCursor limits = root.at("limits");
  for (int reading = 0; reading < 2; ++reading) {
    CHECK(limits.at("time").seconds({}).base_units() == 90);
    CHECK(limits.at("power").watts({}).base_units() == 5);
    CHECK(limits.at("share").quantity(Dimension::share, {}) == 0.5);
    CHECK(limits.at("rate").data_rate({}).base_units() == 1e9);
    CHECK(limits.at("wait").seconds({}).base_units() == 0);
  }
  std::vector<std::string> notes{"before"};
  root.tell_unitless_sets(notes);
  CHECK(notes == std::vector<std::string>{"before", "limits.time: 90 s (no unit given)",
                                          "limits.power: 5 W (no unit given)"});
  root.tell_unitless_sets(notes);
  CHECK(notes.size() == 3);
  // What a file says in base units is said with its schema before it.
  std::vector<std::string> none;
  const JsonCursor plain = parse(R"({"time": 90})");
  (void)plain.at("time").seconds({});
  plain.tell_unitless_sets(none);
  CHECK(none.empty());
}

TEST_CASE("--set: errors name the option") {
  CHECK(complaint_of([] { (void)parse("{}", {"a.b=x"}).at("a").at("b").integer(0, 9); }) ==
        "p.json#/a/b: found \"x\" (--set a.b=x); allowed: a whole number from 0 to 9");
  // What an option brought along is its doing too; what was there before is not.
  CHECK(complaint_of([] { (void)parse("{}", {"a={\"b\": 1}"}).at("a").at("b").string(); }) ==
        "p.json#/a/b: found 1 (--set a={\"b\": 1}); allowed: a string");
  CHECK(complaint_of([] { (void)parse(R"({"ab": 1})", {"a=2"}).at("ab").string(); }) ==
        "p.json#/ab: found 1; allowed: a string");
  CHECK(complaint_of([] { parse("{}", {"a.b.c=1"}).finish(); }) ==
        "p.json#/a: found the unknown key \"a\" (--set a.b.c=1); allowed: no keys");
  CHECK(complaint_of([] { parse(R"({"a": {"b": 2}})", {"a.c=1"}).finish(); }) ==
        "p.json#/a: found the unknown key \"a\"; allowed: no keys");
  // A word that no preset has is refined by no key.
  CHECK(
      complaint_of([] {
        const JsonCursor root = parse(R"({"recompute": "full"})", {"recompute.modules=[]"});
        (void)root.at("recompute").find("modules");
        root.at("recompute").finish();
      }) ==
      "p.json#/recompute: found the word \"full\", to which --set recompute.modules=[] adds a key; "
      "allowed: an object of modules, set as a whole");
  CHECK(complaint_of([] { parse("{}", {"nodes"}); }) ==
        "--set: found \"nodes\"; allowed: path=value, such as cluster.nodes=384");
  CHECK(complaint_of([] { parse("{}", {"=3"}); }) ==
        "--set: found \"=3\"; allowed: path=value, such as cluster.nodes=384");
  CHECK(
      complaint_of([] { parse("{}", {"a/b=3"}); }) ==
      "--set a/b=3: found \"a/b\"; allowed: keys with dots between them, or a JSON pointer, which "
      "begins with / and has ~1 for one within a key. Did you mean \"a.b\"?");
  for (const char* cut : {"a={\"b\": 1", "a=[1, 2", "a=\"b"}) {
    CAPTURE(cut);
    CHECK(complaint_of([&] { parse("{}", {cut}); }).starts_with(std::string("--set ") + cut));
  }
  CHECK(complaint_of([] { parse("{}", {"a..b=3"}); }) ==
        "--set a..b=3: found \"a..b\"; allowed: a path without empty parts");
  CHECK(complaint_of([] { parse(R"({"a": 3})", {"a.b=3"}); }) ==
        "--set a.b=3#/a: found 3; allowed: an object or array, for \"b\" to be in");
  CHECK(complaint_of([] { parse(R"({"a": [3]})", {"a.1=3"}); }) ==
        "--set a.1=3#/a: found an array of 1 elements; allowed: an index below that instead of "
        "\"1\"");
}

}  // namespace lockstep
