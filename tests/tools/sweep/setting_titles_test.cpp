// What pages call what a sweep changes.
#include "tools/views/sweep/setting_titles.hpp"

#include <doctest/doctest.h>
#include <utility>

#include "sim/search/sweep/sweep.hpp"

using namespace lockstep;

namespace {

SweepAxis axis_of(std::initializer_list<std::pair<const char*, const char*>> variables) {
  SweepAxis axis;
  for (const auto& [at, name] : variables) {
    SweepVariable& variable = axis.variables.emplace_back();
    variable.at = at;
    variable.name = name;
  }
  return axis;
}

}  // namespace

TEST_CASE("keys in words: known words as they are spelt, the part that says what they are of") {
  CHECK(words_of_key("nic_bandwidth") == "NIC bandwidth");
  CHECK(words_of_key("nodes") == "Nodes");
  CHECK(words_of_key("") == "");
  CHECK(title_of_key("/cluster/node/nics") == "NICs");
  CHECK(title_of_key("/run/checkpoint/interval") == "Checkpoint interval");
  CHECK(title_of_key("/parallelism/tensor") == "Tensor parallelism");
  CHECK(title_of_key("/power/cap") == "Power cap");
  CHECK(title_of_key("/model") == "Model");
}

TEST_CASE("settings are called after their place, and after their names where two would be alike") {
  Sweep sweep;
  sweep.axes = {
      axis_of({{"/cluster/node/nic_bandwidth", "nic"}, {"", "micro_batches"}}),
      axis_of({{"/cluster/node/bandwidth", "inside"}, {"/cluster/bandwidth", "outside"}})};
  sweep.derived.push_back({.name = "nic_bytes_per_s",
                           .is = {},
                           .from = {},
                           .at = {},
                           .quantity_of = {{0, Dimension::data_rate}}});
  sweep.derived.push_back(
      {.name = "data", .is = {}, .from = {}, .at = "/parallelism/data", .quantity_of = {}});
  const auto titles = setting_titles(sweep);
  CHECK(titles.at("nic") == "NIC bandwidth");
  CHECK(titles.at("nic_bytes_per_s") == "NIC bandwidth");
  CHECK(titles.at("micro_batches") == "Micro batches");
  CHECK(titles.at("data") == "Data parallelism");
  CHECK(titles.at("inside") == "Bandwidth");
  CHECK(titles.at("outside") == "Outside");
}
