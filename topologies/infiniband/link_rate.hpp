/// Widths and speeds of InfiniBand links as infiniband-diags writes them: "4xHDR" is 200 Gb/s.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "models/units.hpp"

namespace lockstep {

/// What one lane carries after its line code.
struct LaneSpeed {
  std::string_view name;  ///< "HDR"
  double gigabits;        ///< per second and lane, of data
  int ibsim_code;         ///< `s=` of a net file; 0: ibsim does not know it
  std::string_view source;
};
[[nodiscard]] std::span<const LaneSpeed> lane_speeds();

struct LaneCount {
  int lanes;
  int ibsim_code;  ///< `w=` of a net file; 0: ibsim does not know it
};
[[nodiscard]] std::span<const LaneCount> lane_counts();

/// Of "4xHDR", or of "50Gb/s", which write_ibsim() gives links of other speeds; nothing: it is
/// neither.
[[nodiscard]] std::optional<BytesPerSecond> link_rate(std::string_view text);
/// The reverse: the name with the fewest lanes other than one where four will do, since links are
/// built of four; "50Gb/s" where no name fits.
[[nodiscard]] std::string link_rate_name(BytesPerSecond rate);

/// Options of a net file's port, " w=2 s=4"; empty where ibsim has no such speed.
[[nodiscard]] std::string ibsim_rate_options(BytesPerSecond rate);
/// The reverse, by the codes of one port; nothing: a code that ibsim does not know. A mask of
/// several speeds or widths means the fastest. 0 stands for ibsim's default, 4xSDR.
[[nodiscard]] std::optional<BytesPerSecond> ibsim_rate(int width_code, int speed_code);

}  // namespace lockstep
