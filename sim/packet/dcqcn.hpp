/// DCQCN: when a switch marks a packet, and how a source's rate follows the notifications.
/// Source of the whole file: Zhu et al. 2015, "Congestion control for large-scale RDMA
/// deployments", SIGCOMM, section 3 (algorithm), section 5.2 and figure 14 (constants).
#pragma once

#include <cstdint>

#include "models/base/units.hpp"

namespace lockstep {

/// At the switch (congestion point), as in random early detection: figure 5.
struct EcnMarking {
  std::uint32_t k_min = 5000;    ///< bytes in the output queue below which nothing is marked
  std::uint32_t k_max = 200000;  ///< above which everything is
  double p_max = 0.01;           ///< at k_max
};
/// Probability that a packet which finds `queued` bytes is marked.
double mark_probability(const EcnMarking& marking, std::uint64_t queued);

struct DcqcnConstants {
  Seconds notification_interval{50e-6};  ///< N: at most one notification per flow (receiver)
  Seconds alpha_timer{55e-6};            ///< K, longer than N
  Seconds rate_timer{55e-6};             ///< T
  double byte_counter = 10e6;            ///< B; infinity: the timer alone counts
  double g = 1.0 / 256;                  ///< gain of alpha
  int fast_recovery = 5;                 ///< F: steps before additive increase
  BytesPerSecond additive = gigabits_per_second(0.04);  ///< R_AI
  /// R_HAI: the paper leaves it to QCN. Ten times R_AI, as the NIC firmware's defaults rpg_hai_rate
  /// 50 Mb/s and rpg_ai_rate 5 Mb/s.
  BytesPerSecond hyper = gigabits_per_second(0.4);
  BytesPerSecond least = gigabits_per_second(0.04);  ///< no cut goes below; assumed
  /// A cut that follows another without an increase between leaves R_T where it was (the firmware's
  /// rpg_clamp_tgt_rate = 0). The paper's equation 1 always lowers it.
  bool keep_target = false;
};

/// The constants that NIC vendors suggest for this line rate, with the marking that goes with them:
/// thresholds of 100 and 400 KB per 25 Gb/s with p_max 0.2, N 4 us, K 1 us, T 300 us and no
/// byte counter, F 1, R_AI and R_HAI 5 and 50 Mb/s per 25 Gb/s, target kept. Source: Li et al.
/// 2019, "HPCC", SIGCOMM, sections 2.3 and 5.1, and the simulation that they published with it
/// (github.com/alibaba-edu/ High-Precision-Congestion-Control, simulation/run.py, "dcqcn"). `least`
/// is its 1 Gb/s of 50.
struct DcqcnTuning {
  EcnMarking marking;
  DcqcnConstants constants;
};
DcqcnTuning vendor_tuning(BytesPerSecond line_rate);

/// The source's rate limiter (reaction point): current rate R_C, target R_T, alpha. It starts at
/// line rate.
class DcqcnRate {
 public:
  DcqcnRate(const DcqcnConstants& constants, BytesPerSecond line_rate)
      : constants_(&constants), line_(line_rate), current_(line_rate), target_(line_rate) {}

  [[nodiscard]] BytesPerSecond current() const { return current_; }
  [[nodiscard]] BytesPerSecond target() const { return target_; }
  [[nodiscard]] double alpha() const { return alpha_; }
  /// Before the first notification there is no limiter and no timer.
  [[nodiscard]] bool limited() const { return limited_; }

  /// A notification: equation 1, and all counters anew. The caller restarts both timers.
  void on_notification();
  /// K has passed without one: equation 2.
  void on_alpha_timer();
  /// T has passed since the last notification or call.
  void on_rate_timer();
  /// The source has sent so much.
  void on_sent(double bytes);

 private:
  void increase();

  const DcqcnConstants* constants_;
  BytesPerSecond line_, current_, target_;
  double alpha_ = 1;
  double bytes_ = 0;  ///< since the byte counter last ran out
  int timer_steps_ = 0;
  int byte_steps_ = 0;
  bool limited_ = false;
};

}  // namespace lockstep
