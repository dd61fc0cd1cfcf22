/// Widths and speeds of InfiniBand links as infiniband-diags writes them: "4xHDR" is 200 Gb/s.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "models/base/units.hpp"

namespace lockstep {

/// What one lane carries after its line code.
struct LaneSpeed {
  std::string_view name;  ///< "HDR"
  double gigabits;        ///< per second and lane, of data
  int ibsim_code;         ///< `s=` of a net file; 0: none
  int ibsim_extended;     ///< `e=` of a net file; 0: none
  std::string_view source;
};
[[nodiscard]] std::span<const LaneSpeed> lane_speeds();

struct LaneCount {
  int lanes;
  int ibsim_code;  ///< `w=` of a net file; 0: ibsim does not know it
};
[[nodiscard]] std::span<const LaneCount> lane_counts();

/// Of "4xHDR", or of "50Gb/s", as write_ibsim() writes links of other speeds; nothing: it is
/// neither.
[[nodiscard]] std::optional<BytesPerSecond> link_rate(std::string_view text);
/// The reverse: the name with the fewest lanes other than one where four will do, since links are
/// built of four; "50Gb/s" where no name fits.
[[nodiscard]] std::string link_rate_name(BytesPerSecond rate);

/// What the options of a port in a net file of ibsim enable: the fastest of `w=` (width), `s=`
/// (speed) and `e=` (extended speed), each a mask of codes; 0: not said. Where nothing is, ibsim's
/// default, 4xSDR. Nothing: codes that ibsim does not know.
struct IbsimCodes {
  int width = 0;
  int speed = 0;
  int extended = 0;
};
[[nodiscard]] std::optional<BytesPerSecond> ibsim_rate(const IbsimCodes& codes);

}  // namespace lockstep
