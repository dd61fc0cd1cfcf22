/// Parts of chart options that charts of several pages share.
#pragma once

#include <nlohmann/json.hpp>

namespace lockstep {

/// A plot that fills its element but for `top` and `bottom` pixels; labels of axes lie within.
nlohmann::json plot_grid(int top, int bottom);

/// A slider below the plot; on the plot, the wheel with the control key: alone it scrolls the page.
nlohmann::json time_zoom();

/// An axis of time from 0 to `last` in `unit`.
nlohmann::json time_axis(double last, const std::string& unit);

}  // namespace lockstep
