#include "tools/laws/said.hpp"

#include <fmt/format.h>
#include <sstream>
#include <utility>

#include "models/base/write_json.hpp"
#include "sim/laws/law_subject.hpp"
#include "sim/search/rebase_files.hpp"
#include "tools/console/run_cli.hpp"

namespace lockstep {

std::string Commands::write(std::string_view name, Json document) const {
  const std::string to = folder_.path(name);
  rebase_files(document, from_, to);
  return folder_.write(name, write_json(document, 2));
}

std::string Commands::write_text(std::string_view name, const Json& document) const {
  return folder_.write(name, write_json(document, 2));
}

Said Commands::run(std::vector<std::string> words) const {
  count_();
  for (const std::string& folder : presets_) {
    words.emplace_back("--presets");
    words.push_back(folder);
  }
  std::ostringstream out, err;
  Console console{.out = out, .err = err, .style = {}, .err_is_terminal = false};
  const Exit exit = run_cli(words, console);
  if (exit == Exit::interrupted) throw LawsStopped();
  return {exit, out.str(), err.str()};
}

bool answered(std::string_view who, const Said& said, LawBook& book) {
  const bool ok = said.exit == Exit::ok;
  book.same_text(fmt::format("{} answers", who), ok ? "" : said.complaint(), "");
  return ok;
}

}  // namespace lockstep
