#include "sim/launch/tree_text.hpp"

#include <doctest/doctest.h>
#include <string>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

/// "key=value;..." of all settings.
std::string shown(const std::vector<Setting>& settings) {
  std::string out;
  for (const Setting& one : settings) out += one.key + "=" + one.text() + ";";
  return out;
}

}  // namespace

TEST_CASE("trees: YAML, TOML and JSON become the same flat keys") {
  CHECK(shown(read_yaml_settings("f", "a:\n  b: 1\n  c: [x, y]\n  d: null\n  e: [{f: 2}]\n")) ==
        "a.b=1;a.c=x y;a.d=null;a.e.0.f=2;");
  CHECK(shown(read_toml_settings("f", "[a]\nb = 1_000\nc = [\"x\", \"y\"]\nd = true\ne = 2.5")) ==
        "a.b=1000;a.c=x y;a.d=true;a.e=2.5;");
  CHECK(shown(read_json_settings("f", R"({"a": {"b": 1e9, "c": ["x"], "d": null, "e": {}}})")) ==
        "a.b=1000000000;a.c=x;a.d=null;a.e=null;");
}

TEST_CASE("trees: anchors, merged maps and several documents are read") {
  CHECK(shown(read_yaml_settings("f", "a: &x {b: 1}\nc:\n  <<: *x\n  d: 2\n---\ne: 3\n")) ==
        "a.b=1;c.b=1;c.d=2;e=3;");
}

TEST_CASE("interpolations: siblings, other keys, products and defaults are filled in") {
  const auto filled = [](const char* text) { return shown(read_yaml_settings("f", text)); };
  CHECK(filled("m:\n  h: 64\n  f: ${multiply:4, ${.h}}\n  g: ${m.f}\n  t: ${training.m.h}\n") ==
        "m.h=64;m.f=256;m.g=256;m.t=64;");
  CHECK(filled("n: ${oc.env:NODES,4}\nd: ${divide_floor:${n},2}\n") == "n=4;d=2;");
  CHECK(filled("a: ${b}\nb: ${a}\nc: ${nowhere}/x\n") == "a=${b};b=${a};c=${nowhere}/x;");
}

TEST_CASE("trees: what is broken, deep or holds itself is an error of one line") {
  const auto line_of = [](auto read, const std::string& text) -> std::string {
    try {
      (void)read("f", text);
    } catch (const InputError& error) {
      return error.what();
    }
    return "read";
  };
  CHECK(line_of(read_yaml_settings, "a: [1, 2\nb: 3").starts_with("f: found at line "));
  CHECK(line_of(read_yaml_settings, "a: &x [*x, {b: 1}]") ==
        "f: found more than 64 levels, or a value that holds itself; allowed: at most 64 levels");
  CHECK(line_of(read_toml_settings, "a = \n").starts_with("f: found at line 1, column "));
  CHECK(line_of(read_toml_settings, "a = [\n  [1],\n  []]\n[ <b]\n") ==
        "f: found at line 4: a table without a name; allowed: TOML");
  std::string dots = "a";
  for (int i = 0; i < 100'000; ++i) dots += ".a";
  CHECK(line_of(read_toml_settings, dots + " = 1") ==
        "f: found at line 1: more than 2000 points; allowed: TOML");
  CHECK(line_of(read_json_settings, "{\"a\": ").find('\n') == std::string::npos);
  std::string bomb = "a0: &a0 {x: 1}\n";
  for (int i = 1; i < 30; ++i) {
    const std::string before = "*a" + std::to_string(i - 1), name = "a" + std::to_string(i);
    bomb += name + ": &" + name + " {p: " + before + ", q: " + before + "}\n";
  }
  CHECK(line_of(read_yaml_settings, bomb) ==
        "f: found more than 200,000 values; allowed: the settings of a training");
  CHECK(line_of(read_yaml_settings, std::string(100'000, '[')) != "read");
}

}  // namespace lockstep
