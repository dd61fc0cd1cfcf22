// The pages of `lockstep queue fill`, `explain` and `forecast`: the same numbers as the terminal
// has.
#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"
#include "tools/console/options.hpp"
#include "tools/views/report/assets.hpp"

using namespace lockstep;

namespace {

constexpr const char* kFilling = LOCKSTEP_SOURCE_DIR "/scenarios/queue/fill-mixed-gpus.json";
constexpr const char* kSlurm = LOCKSTEP_SOURCE_DIR "/scenarios/queue/slurm-recorded.json";

bool has_charts() {
  try {
    (void)chart_library();
    return true;
  } catch (const UsageError&) {
    return false;  // built without them
  }
}

/// The command's JSON, and its page beside it.
struct Paged {
  nlohmann::json answer;
  std::string html;

  [[nodiscard]] bool says(const std::string& words) const {
    return html.find(words) != std::string::npos;
  }
};
Paged paged(std::vector<std::string> words) {
  const test::TemporaryFolder folder;
  const std::string page = folder.path() + "/page.html";
  words.insert(words.end(), {"--format", "json", "--report", page});
  const test::Ran ran = test::lockstep_with(words);
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  return {nlohmann::json::parse(ran.out), read_text_file(page)};
}

std::string hundredths(double share) { return fmt::format("{:.2f}\u00a0%", 100 * share); }

}  // namespace

TEST_CASE("queue fill: a page of what each policy allocates") {
  if (!has_charts()) return;
  const Paged page = paged({"queue", "fill", kFilling});
  std::string best;
  double most = 0;
  for (const auto& [name, of] : page.answer["policies"].items()) {
    for (const char* const share :
         {"allocated", "least_allocated", "most_allocated", "fragmented"}) {
      CHECK_MESSAGE(page.says("\">" + hundredths(of[share].get<double>()) + "</td>"), name, " ",
                    share);
    }
    CHECK(page.says("\"name\":\"" + name + "\""));  // a line of its own
    if (of["allocated"].get<double>() <= most) continue;
    most = of["allocated"];
    best = name;
  }
  // The headline names the one that allocates most.
  CHECK(page.says("<strong>" + best + "</strong> has allocated <strong>" + hundredths(most)));
  for (const char* const part : {"The cluster", "The workload", "Inputs"}) {
    CHECK(page.says(fmt::format("<h2>{}</h2>", part)));
  }
}

TEST_CASE("queue explain: the stretches of the page's table add up to the wait") {
  if (!has_charts()) return;
  const Paged page = paged({"queue", "explain", kSlurm, "--job", "10"});
  double sum = 0;
  for (const auto& [reason, seconds] : page.answer["reasons_s"].items()) {
    CHECK(page.says("<td>" + reason + "</td>"));
    sum += seconds.get<double>();
  }
  CHECK(sum == doctest::Approx(page.answer["wait_s"].get<double>()));
  // A row for each stretch, whose last column names the first of the jobs before it.
  for (const nlohmann::json& wait : page.answer["waits"]) {
    CHECK(page.says(fmt::format("<td>{},\u00a0of\u00a0", wait["first_before"].get<std::string>())));
  }
  CHECK(page.says("<h2>Its wait, stretch by stretch</h2>"));
  CHECK(page.says("<h2>Sources</h2>"));
}

TEST_CASE("queue explain: work, wait and what was held beyond them are the time to the end") {
  // Evicted once: it goes back to its last checkpoint, and starts anew.
  constexpr const char* kTwoTeams = "kueue-two-teams";
  const test::Ran ran = test::lockstep_with({"queue", "explain", kTwoTeams, "--job", "pretrain_8"});
  REQUIRE(ran.exit == Exit::ok);
  // 10.1 h - 3.83 h - 6 h, of which 5 min are the restart and 10 min the work since 2 h.
  std::string words = ran.out;  // without the breaks of lines
  std::ranges::replace(words, '\n', ' ');
  CHECK(words.find("6.00 h on 8 GPUs, submitted at 0 s, started at 0 s, again at 6.00 h") !=
        std::string::npos);
  CHECK(words.find("held GPUs for 15.0 min more") != std::string::npos);
  if (!has_charts()) return;
  const Paged page = paged({"queue", "explain", kTwoTeams, "--job", "pretrain_8"});
  CHECK(page.says("work lost and done again, restarts, slower steps"));
  CHECK(page.says("started, again at 6.00\u00a0h"));
}

TEST_CASE("queue forecast: a page with a row and a bar for each job that waits") {
  if (!has_charts()) return;
  const Paged page = paged({"queue", "forecast", kSlurm, "--at", "4000 s", "--draws", "5"});
  const auto waiting = page.answer["waiting"];
  REQUIRE(!waiting.empty());
  for (const nlohmann::json& of : waiting) {
    CHECK(page.says(fmt::format("<tr><td>{}</td>", of["job"].get<std::string>())));
  }
  CHECK(page.says(fmt::format("<strong>{} jobs wait</strong>", waiting.size())));
  CHECK(page.says("When they start"));
  CHECK(page.says("no other job is submitted"));
}

TEST_CASE("queue: a page is of fill, explain and forecast, and whole or not there") {
  if (!has_charts()) return;
  const test::TemporaryFolder folder;
  const std::string page = folder.path() + "/page.html";
  const test::Ran import = test::lockstep_with(
      {"queue", "import", "--slurm", "slurm.conf", "-o", "site.json", "--report", page});
  CHECK(import.exit == Exit::bad_input);
  CHECK(import.err.find("--report is not of import") != std::string::npos);
  const test::Ran wrong =
      test::lockstep_with({"queue", "explain", kSlurm, "--job", "nobody", "--report", page});
  CHECK(wrong.exit == Exit::bad_input);
  CHECK(!std::filesystem::exists(page));
}
