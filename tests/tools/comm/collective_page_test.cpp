#include "tools/views/comm/collective_page.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "tests/support/presets.hpp"
#include "tools/console/options.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/html.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

bool has_charts() {
  try {
    (void)chart_library();
    return true;
  } catch (const UsageError& error) {
    MESSAGE(error.what());
    return false;
  }
}

TEST_CASE("collective page: every row's numbers, every reason and every assumption is there") {
  if (!has_charts()) return;
  const CollectiveStudy study =
      run_collective_study(JsonCursor::parse("<b>.json", R"({"about": "<b>bold",
        "cluster": {"node": "dgx_h100", "nodes": 64, "fabric": "fat_tree_2_to_1"},
        "collective": {"op": ["all_reduce", "all_to_all"], "sizes": ["1 KiB", "256 MiB"]}})"),
                           test::presets());
  REQUIRE(study.rows.size() == 4);
  const std::string page = collective_page(study);
  CHECK(page == collective_page(study));
  CHECK(page.find("<b>bold") == std::string::npos);
  std::vector<std::string> sentences = choice_reasons(study);
  CHECK(sentences.size() >= 2);
  sentences.insert(sentences.end(), study.cluster.assumptions.begin(),
                   study.cluster.assumptions.end());
  for (const CollectiveRow& row : study.rows) {
    sentences.push_back(page_duration(row.time.base_units()));
    sentences.push_back(page_bytes(row.busbw_bytes_per_s) + "/s");
  }
  for (const std::string& sentence : sentences) {
    CAPTURE(sentence);
    CHECK(page.find(prose(sentence).str()) != std::string::npos);
  }
  // Thin switches hold the large all-to-all back: the page says what a full fabric would take.
  REQUIRE_FALSE(study.rows.back().slowest_link.empty());
  CHECK(page.find("Full fabric") != std::string::npos);
}

}  // namespace
}  // namespace lockstep
