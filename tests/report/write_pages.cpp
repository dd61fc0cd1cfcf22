// Writes the sample pages into a folder: report_pages FOLDER.
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <string>

#include "tests/support/sample_reports.hpp"
#include "tools/lockstep/report/congestion_page.hpp"

using namespace lockstep;

int main(int count, char** words) {
  if (count != 2) return 2;
  const std::filesystem::path folder = words[1];
  const auto write = [&](const std::string& name, const CongestionReport& report) {
    std::ofstream(folder / (name + ".html"), std::ios::binary) << congestion_page(report);
  };
  try {
    std::filesystem::create_directories(folder);
    write("busy", test::busy_report());
    write("calm", test::calm_report());
    write("large", test::large_report(12, 4000, 3000, 1000));
    write("one-link", test::large_report(1, 1, 1, 0));
    write("empty", CongestionReport{.title = "Nothing",
                                    .about = {},
                                    .fabric = {},
                                    .jobs = {},
                                    .links = {},
                                    .transfers = {},
                                    .notes = {}});
  } catch (const std::exception& problem) {
    fmt::print("skipped: {}\n", problem.what());
    return 0;
  }
}
