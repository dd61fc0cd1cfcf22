// The profiles that ship are what lockstep import kernels makes of the published tables.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/text_file.hpp"
#include "sim/measured/import_kernels.hpp"
#include "sim/measured/statistics.hpp"
#include "sim/measured/validate_profile.hpp"
#include "sim/scenario/read_profile.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using test::presets;

std::string table(const char* name) {
  return fmt::format("{}/tests/reference/{}", LOCKSTEP_SOURCE_DIR, name);
}

Profile made_again(const std::string& gpu) {
  const std::string text = import_kernels({.gemm = {table("gemm.json")},
                                           .attention = {table("attention.json")},
                                           .memory = {table("memory_kernels.json")},
                                           .nccl = {table("nccl.json")}},
                                          presets().gpu(gpu), presets());
  return read_profile("made again", text, presets());
}

/// What a benchmark times beside a kernel is taken out by constants of the presets, which may be
/// fitted again; the rest of a time is the table's.
template <class Points>
void check_same(const Points& shipped, const Points& made) {
  constexpr double kConstantsMoved = 0.1;
  REQUIRE(shipped.size() == made.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(shipped[i].time / made[i].time - 1) < kConstantsMoved);
  }
}

/// What the project wants of its kernels, each point predicted without itself: median errors.
struct WantedError {
  std::string_view kind;
  double most;
};
constexpr std::array kWanted{WantedError{"product bf16", 0.05}, WantedError{"product fp8", 0.1},
                             WantedError{"attention", 0.08}, WantedError{"collective", 0.06}};

/// Which of them a point counts for; products only from 1,024 on in m, n and k.
std::string_view wanted_kind(const ValidationPoint& point) {
  const std::string kind = identity_of(point, "kind");
  if (kind.find("1 node of") != std::string::npos) return "collective";
  if (kind.starts_with("attention")) return "attention";
  if (!kind.starts_with("product")) return {};
  double m = 0, n = 0, k = 0;
  REQUIRE(std::sscanf(identity_of(point, "shape").c_str(), "%lf x %lf x %lf", &m, &n, &k) == 3);
  if (std::min({m, n, k}) < 1024) return {};
  return kind == "product bf16" ? "product bf16" : kind == "product fp8" ? "product fp8" : "";
}

}  // namespace

TEST_CASE("published profiles: each point is predicted from the others as well as is wanted") {
  std::map<std::string_view, std::vector<double>> errors;
  for (const std::string& name : presets().names("profiles")) {
    for (const ValidationPoint& point : validate_profile(name, presets()).points) {
      if (identity_of(point, "by") != "others") continue;
      errors[wanted_kind(point)].push_back(std::abs(point.error));
    }
  }
  for (const WantedError& wanted : kWanted) {
    CAPTURE(wanted.kind);
    REQUIRE(errors[wanted.kind].size() > 250);
    CHECK(median(errors[wanted.kind]) <= wanted.most);
  }
}

TEST_CASE("measured profiles: the laws hold on cards that none of them was fitted to") {
  // But the memory-bound one of H200, whose constants lie between this card's and published ones.
  // H100's constants of cuDNN are of 2024: release 9.19 is faster.
  struct Card {
    std::string_view profile;
    std::array<WantedError, 4> bounds;
  };
  const std::array cards{Card{"h200_sxm_measured",
                              {{{"product bf16", 0.045},
                                {"product fp8", 0.06},
                                {"attention", 0.09},
                                {"memory", 0.09}}}},
                         Card{"h100_sxm5_measured",
                              {{{"product bf16", 0.055},
                                {"product fp8", 0.05},
                                {"attention", 0.15},
                                {"memory", 0.09}}}}};
  for (const Card& card : cards) {
    CAPTURE(card.profile);
    std::map<std::string_view, std::vector<double>> errors;
    for (const ValidationPoint& point :
         validate_profile(std::string(card.profile), presets()).points) {
      if (identity_of(point, "by") != "law") continue;
      for (const WantedError& bound : card.bounds) {
        if (identity_of(point, "kind").starts_with(bound.kind)) {
          errors[bound.kind].push_back(std::abs(point.error));
        }
      }
    }
    for (const WantedError& bound : card.bounds) {
      CAPTURE(bound.kind);
      REQUIRE(errors[bound.kind].size() > 50);
      CHECK(median(errors[bound.kind]) <= bound.most);
    }
  }
}

TEST_CASE("published profiles: made of the tables, models/kernels/profiles.md says how") {
  CHECK(presets().names("profiles").size() == 10);
  for (const std::string& name : presets().names("profiles")) {
    if (name.ends_with("_measured")) continue;
    CAPTURE(name);
    const Profile shipped = load_profile(name, presets());
    CHECK(name.ends_with("_published"));
    CHECK(shipped.gpu.starts_with(name.substr(0, name.rfind('_'))));
    CHECK(read_text_file(presets().path("profiles", name)).find("\"published\":\"yes") !=
          std::string::npos);
    CHECK_FALSE(shipped.spans_nodes());
    const Profile made = made_again(shipped.gpu);
    check_same(shipped.gemm, made.gemm);
    check_same(shipped.attention, made.attention);
    check_same(shipped.memory, made.memory);
    check_same(shipped.collectives, made.collectives);
    for (std::size_t i = 0; i < made.gemm.size(); ++i) {
      CHECK(place_of(shipped.gemm[i].shape) == place_of(made.gemm[i].shape));
    }
    for (std::size_t i = 0; i < made.attention.size(); ++i) {
      CHECK(place_of(shipped.attention[i].shape) == place_of(made.attention[i].shape));
    }
  }
}

TEST_CASE("published profiles: run and validate find them by name, a file comes first") {
  const std::string scenario = LOCKSTEP_SOURCE_DIR "/scenarios/llama3-405b-8k.json";
  const test::Ran plain = test::lockstep_with({"run", scenario});
  const test::Ran measured =
      test::lockstep_with({"run", scenario, "--profile", "h100_sxm5_published"});
  REQUIRE(measured.exit == Exit::ok);
  CHECK(measured.out != plain.out);
  CHECK(measured.out.find("as h100_sxm5_published measured them") != std::string::npos);

  const test::Ran validated = test::lockstep_with({"validate", "--profile", "gh200_published"});
  CHECK(validated.exit == Exit::ok);
  CHECK(validated.out.find("all, by others") != std::string::npos);

  const test::Ran wrong = test::lockstep_with({"run", scenario, "--profile", "h100_sxm_published"});
  CHECK(wrong.exit == Exit::bad_input);
  CHECK(
      wrong.err.starts_with("h100_sxm_published: found no such file; allowed: the file of a "
                            "profile, or one of a100_sxm4_published, "));
  CHECK(wrong.err.ends_with("Did you mean \"h100_sxm5_published\"?\n"));
  const test::Ran other = test::lockstep_with({"run", scenario, "--profile", "gh200_published"});
  CHECK(other.exit == Exit::bad_input);
  CHECK(other.err.starts_with("gh200_published#/gpu: found \"gh200_96gb\"; allowed: the card of"));

  // A file beside the presets' name.
  const test::TemporaryFolder folder;
  const std::string file = folder.write("mine",
                                        R"({"gpu": "v100_sxm2_32gb",
                  "memory": [{"kernel": "copy", "traffic": "1 MB", "time": "9 us"}]})");
  CHECK(load_profile(file, presets()).memory.size() == 1);
}

}  // namespace lockstep
