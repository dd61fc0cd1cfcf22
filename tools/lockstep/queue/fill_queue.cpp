#include "tools/lockstep/queue/fill_queue.hpp"

#include <array>
#include <cstddef>
#include <ostream>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/json_cursor.hpp"
#include "models/base/text_file.hpp"
#include "sim/answer/filling_answer.hpp"
#include "sim/cluster/fill_cluster.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_filling.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/scenario/shipped_scenarios.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/table.hpp"
#include "tools/views/queue/filling_page.hpp"
#include "tools/views/queue/filling_table.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/input_tables.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 2> kFillFormats{"table", "json"};

}  // namespace

Exit fill_queue(const ParsedOptions& options, Console& console) {
  const std::string format = options.choice("format", kFillFormats);
  const bool reports = wants_report(options);
  const PresetStore presets(options.all("presets"));
  const std::string path = scenario_path(options.positionals[1], presets);
  const JsonCursor root =
      JsonCursor::parse(path, read_text_file(path), JsonStyle::plain, options.all("set"));
  refuse_other_document(root, "queue fill", "a cluster to fill");
  const FillingSpec spec = read_filling(root);
  const InterruptGuard guard;
  FillingResult result;
  {
    const std::size_t all = spec.policies.size() * static_cast<std::size_t>(spec.seeds);
    Progress progress(console.err, "orders", all, console.err_is_terminal);
    result = fill_cluster(spec, [&](std::size_t done, std::size_t of) {
      if (done > 0) progress.update(done, of);
      return !InterruptGuard::interrupted();
    });
  }
  if (result.stopped) console.err << "lockstep queue: interrupted\n";
  if (reports) write_report(options, filling_page(spec, result, written_in(root)));
  write_output(format == "json"
                   ? Answer(JsonText(filling_json(spec, result)))
                   : Answer::terminal(filling_table(spec, result, output_style(options, console))),
               options, console);
  return result.stopped ? Exit::interrupted : Exit::ok;
}

}  // namespace lockstep
