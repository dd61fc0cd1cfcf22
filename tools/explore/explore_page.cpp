#include "tools/explore/explore_page.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>

#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/step/step_report.hpp"
#include "tools/explore/packed.hpp"
#include "tools/views/report/page.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// A number of the answer that the page shows; the end of its name is the unit.
struct ExploredNumber {
  std::string_view group, path, title;
};
constexpr std::string_view kSpeedRows = "Speed", kMemoryRows = "Memory",
                           kCongestionRows = "Congestion", kPowerRows = "Power",
                           kMoneyRows = "Money";
constexpr std::array kExploredNumbers{
    ExploredNumber{kSpeedRows, "step_s", "step time"},
    ExploredNumber{kSpeedRows, "step_s_low", "90 % interval, from"},
    ExploredNumber{kSpeedRows, "step_s_high", "90 % interval, to"},
    ExploredNumber{kSpeedRows, "mfu", "MFU, attention in full"},
    ExploredNumber{kSpeedRows, "mfu_causal", "MFU, attention causal"},
    ExploredNumber{kSpeedRows, "tokens_per_s", "tokens per second"},
    ExploredNumber{kSpeedRows, "tokens_per_s_per_gpu", "tokens per second and GPU"},
    ExploredNumber{kSpeedRows, "tflops_per_gpu", "TFLOP/s per GPU"},
    ExploredNumber{kSpeedRows, "gpus", "GPUs"},
    ExploredNumber{kSpeedRows, "job.parallelism.data", "data width"},
    ExploredNumber{kMemoryRows, "needed_memory_gib", "needed by the fullest GPU"},
    ExploredNumber{kMemoryRows, "usable_memory_gib", "usable"},
    ExploredNumber{kCongestionRows, "fabric.full_fabric.step_s", "step if switches never limited"},
    ExploredNumber{kPowerRows, "power.facility.mean_w", "the site, mean"},
    ExploredNumber{kPowerRows, "power.facility.peak_w", "the site, peak"},
    ExploredNumber{kPowerRows, "power.facility.ramp_w_per_s", "ramp of the site"},
    ExploredNumber{kPowerRows, "power.gpu.mean_w", "a GPU, mean"},
    ExploredNumber{kPowerRows, "power.facility.pue", "PUE"},
    ExploredNumber{kPowerRows, "power.joules_per_token", "energy of a token"},
    ExploredNumber{kMoneyRows, "time_to_train_s", "the whole training takes"},
    ExploredNumber{kMoneyRows, "gpu_hours", "GPU-hours"},
    ExploredNumber{kMoneyRows, "price_usd", "at the price of a GPU's hour"},
    ExploredNumber{kMoneyRows, "power.bill.energy_j", "energy of the training"},
    ExploredNumber{kMoneyRows, "power.bill.owned_usd", "owned: together"},
    ExploredNumber{kMoneyRows, "power.bill.capital_usd", "owned: capital"},
    // Also where the machines have no price: a tariff alone.
    ExploredNumber{kMoneyRows, "power.bill.energy_usd", "energy by its tariff"},
    ExploredNumber{kMoneyRows, "power.bill.running_usd", "energy, people and hosting"},
};

std::string_view kind_name(ControlKind kind) {
  constexpr std::array<std::string_view, 4> kNames{"name", "choice", "count", "number"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool is_slider(const ExploreControl& control) {
  return control.kind == ControlKind::count || control.kind == ControlKind::number;
}

/// What explore.js goes by.
Json page_setup(const Explorer& explorer) {
  Json controls = Json::array(), shown = Json::array(), numbers = Json::array();
  for (const ExploreControl& control : explorer.controls()) {
    controls.push_back({{"path", control.path},
                        {"title", control.title},
                        {"answered", control.answered},
                        {"kind", kind_name(control.kind)},
                        {"values", control.values},
                        {"own", plain_value_at(explorer.scenario(), control.path)},
                        {"group", control.group},
                        {"searched", control.searched}});
  }
  for (const BucketInfo& info : buckets()) {
    shown.push_back({{"name", info.name}, {"title", info.title}, {"remedy", info.remedy}});
  }
  for (const ExploredNumber& number : kExploredNumbers) {
    numbers.push_back({{"group", number.group}, {"path", number.path}, {"title", number.title}});
  }
  return {{"controls", std::move(controls)},
          {"buckets", std::move(shown)},
          {"numbers", std::move(numbers)}};
}

/// Its value is as scenarios write it: without a value a browser would send the text, whose units
/// hang on their numbers by a space that no scenario has.
std::string option_html(const std::string& value) {
  return fmt::format(R"(<option value="{}">{}</option>)", attribute_text(value).str(),
                     escaped(value).str());
}

std::string control_html(const ExploreControl& control, const std::string& own) {
  const std::string path = escaped(control.path).str(), title = escaped(control.title).str();
  std::string out = fmt::format(
      "<div class=\"control\" data-control=\"{}\"><label for=\"{}\">{}</label>"
      "<output></output>",
      path, path, title);
  if (is_slider(control)) {
    return out + fmt::format(
                     "<input type=\"range\" id=\"{}\" min=\"0\" max=\"{}\" step=\"1\">"
                     "</div>\n",
                     path, control.values.size() - 1);
  }
  out += fmt::format(R"(<select id="{}"><option value="">as given</option>)", path);
  const bool listed = std::ranges::find(control.values, own) != control.values.end();
  if (!listed && !own.empty()) out += option_html(own);
  for (const std::string& value : control.values) out += option_html(value);
  return out + "</select></div>\n";
}

std::string group_html(const Explorer& explorer, std::string_view group, bool rare) {
  std::string out;
  for (const ExploreControl& control : explorer.controls()) {
    if (control.group != group || control.rare != rare) continue;
    out += control_html(control, plain_value_at(explorer.scenario(), control.path));
  }
  return out;
}

Html form_html(const Explorer& explorer) {
  std::string out = "<form id=\"controls\" autocomplete=\"off\">\n";
  std::vector<std::string_view> groups;
  for (const ExploreControl& control : explorer.controls()) {
    if (std::ranges::find(groups, control.group) == groups.end()) groups.push_back(control.group);
  }
  for (const std::string_view group : groups) {
    const std::string legend = escaped(group).str();
    out += fmt::format("<fieldset><legend>{}</legend>\n{}", legend,
                       group_html(explorer, group, false));
    const std::string rare = group_html(explorer, group, true);
    if (!rare.empty()) {
      out += fmt::format("<details><summary>more</summary>\n{}</details>\n", rare);
      out += "<button type=\"button\" id=\"search\">fastest layout</button>\n";
    }
    out += "</fieldset>\n";
  }
  return Html::markup(out + "</form>\n");
}

// Where the two links lead says explore.js: from a file there is nothing beside it.
constexpr std::string_view kActions =
    "<p class=\"headline\" id=\"said\" role=\"status\" aria-live=\"polite\">Simulating.</p>\n"
    "<p id=\"followed\" role=\"status\"></p>\n"
    "<div class=\"actions\" id=\"ways\" hidden></div>\n"
    "<div class=\"actions\"><button type=\"button\" id=\"keep\">keep, to compare</button>"
    "<button type=\"button\" id=\"forget\" hidden>forget what was kept</button>"
    "<button type=\"button\" id=\"swap\" hidden>back to what was kept</button>"
    "<button type=\"button\" id=\"reset\">as given</button>"
    "<a id=\"save\" href=\"#\" download=\"explore.json\">save the scenario</a>"
    "<a id=\"json\" href=\"#\" target=\"_blank\" rel=\"noopener\">the answer as JSON</a>"
    "</div>\n<dl class=\"figures\" id=\"figures\"></dl>\n<div id=\"moved\"></div>\n"
    "<div id=\"paper\"></div>\n";  // what controls say and what is assumed, where it is printed

constexpr std::string_view kDialog =
    "<dialog id=\"explained\" aria-label=\"What stands behind a number\"><form method=\"dialog\">"
    "<button>close</button></form><div></div></dialog>\n";

/// A chart that explore.js gives its bars.
void add_empty_chart(Page& page, const PageChart& chart) {
  page.chart(chart, {{"series", nlohmann::json::array()}});
}

/// All sections, with what explore.js has to know of them.
void add_sections(Page& page, const Explorer& explorer) {
  page.section("What is simulated");
  page.markup(form_html(explorer));
  page.section("The answer");
  page.markup(Html::markup(kActions));
  page.section("Where the GPU time goes");
  add_empty_chart(page, {.title = "The step",
                         .about = "Mean over all GPUs; where the pointer rests: what attacks it.",
                         .summary = "Bars of the parts of the step.",
                         .height_px = 420});
  page.section("Memory", "Of one GPU of each stage; dashed: what is usable.");
  page.begin_row();
  add_empty_chart(page, {.title = "Now", .about = {}, .summary = "Bars of the parts of memory."});
  add_empty_chart(
      page, {.title = "Kept", .about = {}, .summary = "Bars of the parts of memory, as kept."});
  page.end_row();
  page.section("Congestion",
               "Time in which GPUs only wait for the network, and what would be left of it on "
               "switches that never limit.");
  add_empty_chart(page, {.title = "Exposed communication",
                         .about = {},
                         .summary = "Bars of exposed communication by kind, here and on switches "
                                    "that never limit.",
                         .height_px = 260});
  page.markup(
      Html::markup("<div class=\"actions\"><button type=\"button\" id=\"links\">which links "
                   "hold it back</button></div><div id=\"held\" aria-live=\"polite\">"
                   "</div>\n"));
  page.section("Power");
  add_empty_chart(page, {.title = "What the power goes into",
                         .about = {},
                         .summary = "Bars of the shares of power by consumer.",
                         .height_px = 420});
  page.section("All numbers", "Those with a name to press show what stands behind them.");
  page.markup(Html::markup("<div id=\"numbers\"></div>\n" + std::string(kDialog) +
                           R"(<script type="application/json" id="setup">)") +
              script_json(write_json(page_setup(explorer))) + Html::markup("</script>\n"));
}

/// What the page holds instead of a program that serves it, as base64 of gzip.
Html held(std::string_view id, std::string_view packed) {
  return Html::markup(
      fmt::format("<script type=\"application/octet-stream\" id=\"{}\">{}</script>\n", id, packed));
}

/// The text of every preset by the path at which the module looks for it.
std::string preset_texts(const PresetStore& presets) {
  Json texts = Json::object();
  const auto add = [&](std::string_view kind, const std::string& name) {
    texts[fmt::format("presets/{}/{}.json", kind, name)] = read_text_file(presets.path(kind, name));
  };
  for (const std::string_view kind : PresetStore::kinds()) {
    for (const std::string& name : presets.names(kind)) add(kind, name);
  }
  add("accuracy", "published");  // what intervals are made of
  return write_json(texts);
}

/// A model that a scenario describes itself has no name.
std::string page_title(const Explorer& explorer) {
  const std::string name = explorer.name().empty() ? "One" : explorer.name() + ": one";
  return name + " training step, while you move things";
}

}  // namespace

std::string explore_page(const Explorer& explorer) {
  const ChartLibrary library = chart_library();
  Page page("Explore", page_title(explorer));
  page.about(plain_value_at(explorer.scenario(), "about"));
  add_sections(page, explorer);
  page.foot(
      "The address holds the state; the scenario that is saved gives the same bytes to lockstep "
      "run --allow-oom --format json.");
  const std::string script = std::string(explore_alone_script()).append(explore_script());
  const LivePart live{.style = explore_style(),
                      .script = script,
                      .policy = "script-src 'unsafe-inline'; connect-src 'self'",
                      .from = "It asks only the program that served it."};
  return page.html(library, &live);
}

std::string explore_page_alone(const Explorer& explorer) {
  const ChartLibrary library = chart_library();
  Page page("Explore", page_title(explorer));
  page.about(plain_value_at(explorer.scenario(), "about"));
  add_sections(page, explorer);
  page.markup(held("module", base64(browser_module())));
  page.markup(held("texts", base64(gzip(preset_texts(explorer.presets())))));
  page.markup(Html::markup(R"(<script type="application/json" id="begun">)") +
              script_json(write_json(Json(write_json(explorer.scenario())))) +
              Html::markup("</script>\n"));
  page.foot(
      "Lockstep itself is in this file, for one thread of the browser; the scenario that is saved "
      "gives the same answer to lockstep run --allow-oom --format json.");
  const std::string script = std::string(explore_alone_script()).append(explore_script());
  const LivePart live{
      .style = explore_style(),
      .script = script,
      .policy = "script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:; worker-src blob:",
      .from = "One file that needs no network and no program: it asks the module in it."};
  return page.html(library, &live);
}

}  // namespace lockstep
