/// Traces that hold no requests but clients' rates, window by window, as ServeGen publishes them:
/// requests are drawn from them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/served_request.hpp"

namespace lockstep {

/// How requests are drawn where a trace has clients' rates.
struct ClientDraws {
  std::uint64_t seed = 1;
  int most = 40'000'000;  ///< requests, the first ones
  bool cut = false;       ///< whether more than that are cut off; else they are an error
  bool drawn = false;     ///< set: it was such a trace
};

/// Whether a text is CSV with the columns client, window_s and requests_per_s.
bool has_client_rates(std::string_view text);

/// Draws what clients send. Columns beside those three: interarrival_cv, and of lengths input_p50,
/// input_p90, input_p99 and the same of output. Each client is a renewal process of gamma laws, in
/// a time that runs as fast as its rate says, so that its windows get their rates whatever the
/// variation; a window lasts as long as the least step between two of them (one alone: 600 s).
/// Logarithms of lengths are linear in normal scores through the three quantiles. A window without
/// lengths has those of the client's window before it, else of its first with some; a client
/// without any sends nothing. The first requests are the same however many are drawn. Throws
/// InputError with the row, and where there are more than `draws.most` that are not to be cut off.
std::vector<ServedRequest> draw_client_requests(const std::string& file, std::string_view text,
                                                const ClientDraws& draws);

}  // namespace lockstep
