#include "tools/views/report/assets.hpp"

#include "models/base/output_file.hpp"

// The assembler reads the file as it is: no compiler has to parse 600 kB, and the bytes are the
// same in every build. CMake gives the paths, and rebuilds this file when one of them changes.
#define LOCKSTEP_EMBED(name, path)                                                      \
  asm(".section .rodata\n"                                                              \
      ".global lockstep_" #name                                                         \
      "_begin\n"                                                                        \
      ".global lockstep_" #name                                                         \
      "_end\n"                                                                          \
      "lockstep_" #name                                                                 \
      "_begin:\n"                                                                       \
      ".incbin \"" path                                                                 \
      "\"\n"                                                                            \
      "lockstep_" #name                                                                 \
      "_end:\n"                                                                         \
      ".byte 0\n"                                                                       \
      ".previous\n");                                                                   \
  extern "C" const char lockstep_##name##_begin[];                                      \
  extern "C" const char lockstep_##name##_end[];                                        \
  namespace {                                                                           \
  std::string_view embedded_##name() {                                                  \
    return {lockstep_##name##_begin,                                                    \
            static_cast<std::size_t>(lockstep_##name##_end - lockstep_##name##_begin)}; \
  }                                                                                     \
  }

LOCKSTEP_EMBED(style, LOCKSTEP_PAGE_STYLE)
LOCKSTEP_EMBED(script, LOCKSTEP_PAGE_SCRIPT)
LOCKSTEP_EMBED(parts, LOCKSTEP_PAGE_PARTS)
LOCKSTEP_EMBED(explore_style, LOCKSTEP_EXPLORE_STYLE)
LOCKSTEP_EMBED(explore_script, LOCKSTEP_EXPLORE_SCRIPT)
LOCKSTEP_EMBED(explore_alone, LOCKSTEP_EXPLORE_ALONE)
#ifdef LOCKSTEP_BROWSER_MODULE
LOCKSTEP_EMBED(browser_module, LOCKSTEP_BROWSER_MODULE)
#endif
#ifdef LOCKSTEP_CHART_SCRIPT
LOCKSTEP_EMBED(charts, LOCKSTEP_CHART_SCRIPT)
LOCKSTEP_EMBED(licences, LOCKSTEP_CHART_LICENCES)
#endif

namespace lockstep {

ChartLibrary chart_library() {
#ifdef LOCKSTEP_CHART_SCRIPT
  return {.script = embedded_charts(), .licences = embedded_licences()};
#else
  throw UsageError(
      "reports: this program was built without the chart library that they carry; install npm, run "
      "tools/setup, then build again");
#endif
}

std::string_view browser_module() {
#ifdef LOCKSTEP_BROWSER_MODULE
  return embedded_browser_module();
#else
  throw UsageError(
      "--output: this program was built without the module for browsers that the page carries; run "
      "tools/package/wasm/build, then build again");
#endif
}

bool wants_report(const ParsedOptions& options) {
  if (!options.has("report")) return false;
  (void)chart_library();
  return true;
}

void write_report(const ParsedOptions& options, std::string_view html) {
  OutputFile file(options.get("report"));
  file.write(html);
  file.commit();
}

std::string_view page_style() { return embedded_style(); }
std::string_view page_script() { return embedded_script(); }
std::string_view page_parts_script() { return embedded_parts(); }
std::string_view explore_style() { return embedded_explore_style(); }
std::string_view explore_script() { return embedded_explore_script(); }
std::string_view explore_alone_script() { return embedded_explore_alone(); }

}  // namespace lockstep
