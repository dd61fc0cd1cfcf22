#include "tools/views/report/chart_options.hpp"

#include <string>

#include "tools/views/report/page_numbers.hpp"

namespace lockstep {

using nlohmann::json;

json plot_grid(int top, int bottom) {
  return {{"left", 4},
          {"right", 16},
          {"top", top},
          {"bottom", bottom},
          {"outerBoundsMode", "same"},
          {"outerBoundsContain", "axisLabel"}};
}

json time_zoom() {
  return {{{"type", "slider"},
           {"height", 20},
           {"bottom", 4},
           {"left", 16},
           {"right", 24},
           {"showDetail", false},
           {"showDataShadow", false},
           {"brushSelect", false}},
          {{"type", "inside"},
           {"zoomOnMouseWheel", "ctrl"},
           {"moveOnMouseWheel", false},
           {"moveOnMouseMove", false},
           {"preventDefaultMouseMove", false}}};
}

json time_axis(double last, const std::string& unit) {
  return {{"type", "value"},
          {"min", 0},
          {"max", four_digits(last)},
          {"splitLine", {{"show", false}}},
          {"axisLabel",
           {{"formatter", "{value} " + unit}, {"showMaxLabel", false}, {"hideOverlap", true}}}};
}

}  // namespace lockstep
