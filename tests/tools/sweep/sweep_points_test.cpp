// Sweep files: which points they make, what is wrong with them, and their schema.
#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/search/sweep/points.hpp"
#include "sim/search/sweep/sweep.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// A sweep over a scenario of one step, or one with "run".
class SweepFiles {
 public:
  SweepFiles() {
    folder_.write("step.json", R"({
      "model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 4},
      "parallelism": {"data": 32}, "batch": {"sequences": 32, "micro": 1, "tokens": 8192}})");
    folder_.write("weeks.json", R"({"run": {"seed": 3}})");
    folder_.write("jobs.json", R"({"jobs": []})");
  }
  [[nodiscard]] Sweep load(const Json& sweep) const {
    return load_sweep(folder_.write("sweep.json", sweep.dump()));
  }
  [[nodiscard]] Sweep axes(const std::string& axes, Json rest = Json::object()) const {
    if (!rest.contains("scenario")) rest["scenario"] = "step.json";
    rest["axes"] = Json::parse(axes);
    return load(rest);
  }
  /// Of a sweep that is refused; file names without their folder.
  [[nodiscard]] std::string complaint(const Json& sweep) const {
    try {
      (void)load(sweep);
    } catch (const InputError& error) {
      std::string text = error.what();
      for (std::size_t at; (at = text.find(folder_.path() + "/")) != std::string::npos;) {
        text.erase(at, folder_.path().size() + 1);
      }
      return text;
    }
    return {};
  }
  [[nodiscard]] InputProblem problem(const Json& sweep) const {
    try {
      (void)load(sweep);
    } catch (const InputError& error) {
      return error.problem();
    }
    return {};
  }

 private:
  test::TemporaryFolder folder_;
};

std::string words(const SweepPoint& point) {
  std::string text = std::to_string(point.number) + ":";
  for (const SqlValue& value : point.values) text += " " + text_of(value);
  return text;
}

std::vector<std::string> all_words(const Sweep& sweep) {
  PointMaker maker(sweep);
  std::vector<std::string> out;
  for (const std::uint32_t number : points_of(sweep, 2)) out.push_back(words(maker.make(number)));
  return out;
}

Json sound_sweep() {
  return Json::parse(R"({
    "scenario": "step.json",
    "axes": [
      {"at": "/batch/micro", "values": [1, 2]},
      {"list": [{"/parallelism/tensor": 2}], "names": {"/parallelism/tensor": "tensor"}},
      {"random": 2, "of": [{"at": "/batch/tokens", "uniform": [1024, 2048], "whole": true}]},
      {"latin_hypercube": 6, "of": [{"at": "/precision", "choice": ["bf16"]}]}],
    "derived": [{"name": "twice", "is": "micro * 2", "at": "/batch/sequences"}],
    "constraints": ["micro > 0"]
  })");
}

}  // namespace

TEST_CASE("sweep: all combinations in order, the last axis fastest, what a list leaves out stays") {
  const SweepFiles files;
  const Sweep sweep = files.axes(R"([
    {"at": "/batch/micro", "values": [1, 2]},
    {"list": [{"/parallelism/tensor": 2, "/parallelism/data": 16}, {"/model": "llama3_70b"}]}])");
  CHECK(sweep.columns() == std::vector<std::string>{"micro", "tensor", "data", "model"});
  CHECK(all_words(sweep) == std::vector<std::string>{"0: 1 2 16 ", "1: 1   llama3_70b",
                                                     "2: 2 2 16 ", "3: 2   llama3_70b"});
  PointMaker maker(sweep);
  const Json scenario = maker.make(3).scenario;
  CHECK(scenario.at("model") == "llama3_70b");
  CHECK(scenario.at("batch").at("micro") == 2);
  CHECK(scenario.at("parallelism").at("data") == 32);
}

TEST_CASE("sweep: derived values and constraints are SQL over the columns before them") {
  const SweepFiles files;
  const Sweep sweep = files.axes(R"([{"at": "/parallelism/tensor", "values": [1, 2, 3, 4]}])",
                                 Json::parse(R"({"derived": [
        {"name": "tokens", "from": "/batch/tokens"},
        {"name": "data", "is": "32 / tensor", "at": "/parallelism/data"},
        {"name": "size", "is": "CASE WHEN tensor > 2 THEN 'wide' ELSE 'narrow' END"}],
        "constraints": ["tensor * data = 32", "size <> 'wide' OR tokens / 2.0 > 4095"]})"));
  CHECK(all_words(sweep) ==
        std::vector<std::string>{"0: 1 8192 32 narrow", "1: 2 8192 16 narrow", "3: 4 8192 8 wide"});
  CHECK(PointMaker(sweep).make(3).scenario.at("parallelism").at("data") == 8);
}

TEST_CASE("sweep: repeats are the same seeds for every combination") {
  const SweepFiles files;
  const Sweep sweep = files.axes(R"([{"at": "/run/spares/hot", "values": [1, 2]}])",
                                 Json::parse(R"({"scenario": "weeks.json", "repeats": 3})"));
  PointMaker maker(sweep);
  std::set<std::string> seeds;
  for (std::uint32_t i = 0; i < 3; ++i) {
    const SweepPoint one = maker.make(i), other = maker.make(i + 3);
    CHECK(text_of(one.values[1]) == std::to_string(i));
    CHECK(one.values[2] == other.values[2]);
    CHECK(one.scenario.at("run").at("seed") == json_of(one.values[2]));
    seeds.insert(text_of(one.values[2]));
  }
  CHECK(seeds.size() == 3);
}

TEST_CASE("sweep: draws depend on seed and number alone, and keep to their ranges") {
  const SweepFiles files;
  const std::string axes = R"([{"random": 400, "of": [
    {"name": "a", "uniform": [1, 3], "whole": true},
    {"at": "/batch/tokens", "name": "b", "log_uniform": [1, 10000], "unit": "GB"},
    {"at": "/model", "name": "c", "choice": ["x", "y"]}]}])";
  const Sweep sweep = files.axes(axes);
  std::array<int, 4> whole{};
  int small = 0, first = 0;
  PointMaker maker(sweep);
  for (std::uint32_t i = 0; i < 400; ++i) {
    const SweepPoint point = maker.make(i);
    ++whole.at(static_cast<std::size_t>(std::get<std::int64_t>(point.values[0])));
    const std::string text = std::get<std::string>(point.values[1]);
    CHECK(text.ends_with(" GB"));
    CHECK(point.scenario.at("batch").at("micro") == 1);
    const double size = std::stod(text);
    CHECK((size >= 1 && size <= 10000));
    small += size < 100;
    first += text_of(point.values[2]) == "x";
  }
  // Binomial counts of 400: within five standard deviations of their means.
  CHECK(whole[0] == 0);
  for (std::size_t value = 1; value <= 3; ++value)
    CHECK(std::abs(whole.at(value) - 400 / 3.0) < 48);
  CHECK(std::abs(small - 200) < 50);
  CHECK(std::abs(first - 200) < 50);
  CHECK(words(maker.make(7)) == words(PointMaker(files.axes(axes)).make(7)));
  CHECK(words(maker.make(7)) != words(PointMaker(files.axes(axes, {{"seed", 2}})).make(7)));
}

TEST_CASE("sweep: a Latin hypercube meets each part of each range once") {
  const SweepFiles files;
  const Sweep sweep = files.axes(R"([{"latin_hypercube": 50, "of": [
    {"at": "/batch/micro", "uniform": [0, 50]},
    {"at": "/batch/tokens", "uniform": [100, 150]}]}])");
  std::set<int> one, other;
  PointMaker maker(sweep);
  for (std::uint32_t i = 0; i < 50; ++i) {
    const SweepPoint point = maker.make(i);
    one.insert(static_cast<int>(std::get<double>(point.values[0])));
    other.insert(static_cast<int>(std::get<double>(point.values[1])));
  }
  CHECK(one.size() == 50);
  CHECK(other.size() == 50);
}

TEST_CASE("sweep files: mistakes are named with their place") {
  const SweepFiles files;
  struct Case {
    const char* at;
    const char* value;
    const char* complaint;
  };
  constexpr std::array kCases{
      Case{"/scenario", R"("none.json")",
           "none.json: found no such file; allowed: a readable text file of at most 16 MiB"},
      Case{"/scenario", R"("jobs.json")",
           "jobs.json#/jobs: found an array; allowed: a scenario of one step, or one with \"run\""},
      Case{"/answers", R"("few")", "sweep.json#/answers: found \"few\"; allowed: true or false"},
      Case{"/axes", "[]", "sweep.json#/axes: found an array; allowed: at least one axis"},
      Case{"/axes/0/at", R"("batch..micro")",
           "sweep.json#/axes/0/at: found \"batch..micro\"; allowed: a path into the scenario, such "
           "as "
           "parallelism.tensor or /parallelism/tensor"},
      Case{"/axes/0/at", R"("/batch/Tokens")",
           "sweep.json#/axes/0/at: found \"/batch/Tokens\"; allowed: a \"name\" of lower-case "
           "letters, digits and _ for the column, not \"Tokens\""},
      Case{"/axes/0/name", R"("status")",
           "sweep.json#/axes/0/name: found \"status\"; allowed: a \"name\" that is no other "
           "column's, not \"status\""},
      Case{
          "/axes/3/of/0/at", R"("/parallelism/data/x")",
          "step.json#/parallelism/data: found 32; allowed: an object or array, for \"x\" to be in"},
      Case{"/axes/2/of/0/uniform", "[3, 3]",
           "sweep.json#/axes/2/of/0/uniform: found an array; allowed: [low, high] with low below "
           "high"},
      Case{"/axes/2/of/0/choice", "[1]",
           "sweep.json#/axes/2/of/0: found an object; allowed: one of \"uniform\", \"log_uniform\" "
           "and \"choice\" in it"},
      Case{"/axes/2/random", "1000000",
           "sweep.json#/axes: found an array; allowed: axes with at most 10000000 combinations"},
      Case{"/constraints/0", R"("micr > 0")",
           "sweep.json#/constraints/0: found \"micr > 0\" (no such column: micr); allowed: a "
           "formula "
           "as SQLite takes it, over micro, tensor, tokens, precision, twice"},
      Case{"/constraints/0", R"("random() > 0")",
           "sweep.json#/constraints/0: found \"random() > 0\" (not authorized to use function: "
           "random); allowed: a formula as SQLite takes it, over micro, tensor, tokens, precision, "
           "twice"},
      Case{"/derived/0/is", R"("twice")",
           "sweep.json#/derived/0/is: found \"twice\" (no such column: twice); allowed: a formula "
           "as SQLite takes it, over micro, tensor, tokens, precision"},
      Case{"/repeats", "2",
           "sweep.json#/repeats: found 2; allowed: no such key: one step of step.json is the same "
           "for every seed"},
  };
  CHECK(files.complaint(sound_sweep()).empty());
  for (const Case& wrong : kCases) {
    Json sweep = sound_sweep();
    sweep[Json::json_pointer(wrong.at)] = Json::parse(wrong.value);
    CHECK(files.complaint(sweep) == std::string(wrong.complaint));
  }
}

TEST_CASE("sweep schema: its keys are those that the reader knows") {
  const Json schema =
      Json::parse(read_text_file(LOCKSTEP_SOURCE_DIR "/scenarios/sweep.schema.json"));
  const SweepFiles files;
  struct Place {
    const char* sweep;
    const char* schema;
    bool exactly;  ///< the reader looks for all kinds of axes in each
  };
  constexpr std::array kPlaces{
      Place{"", "", true},
      Place{"/axes/0", "/properties/axes/items/anyOf/0", false},
      Place{"/axes/1", "/properties/axes/items/anyOf/1", false},
      Place{"/axes/2", "/properties/axes/items/anyOf/2", false},
      Place{"/axes/3", "/properties/axes/items/anyOf/3", false},
      Place{"/axes/2/of/0", "/$defs/variables/items", false},
      Place{"/derived/0", "/properties/derived/items", true},
  };
  for (const Place& place : kPlaces) {
    CAPTURE(place.sweep);
    Json sweep = sound_sweep();
    sweep[Json::json_pointer(std::string(place.sweep) + "/zzz")] = 1;
    const InputProblem problem = files.problem(sweep);
    CHECK(problem.pointer == std::string(place.sweep) + "/zzz");
    const std::string read = ", " + problem.allowed + ",";
    std::size_t keys = 0;
    const Json object = schema.at(Json::json_pointer(place.schema));
    for (const auto& [key, member] : object.at("properties").items()) {
      CAPTURE(key);
      CHECK(read.find(", " + key + ",") != std::string::npos);
      keys += key.size() + 2;
    }
    if (place.exactly) CHECK(read.size() == keys + 1);
    for (const Json& key : object.value("required", Json::array())) {
      Json lacking = sound_sweep();
      lacking.at(Json::json_pointer(place.sweep)).erase(key.get<std::string>());
      CHECK_FALSE(files.complaint(lacking).empty());
    }
  }
}

}  // namespace lockstep
