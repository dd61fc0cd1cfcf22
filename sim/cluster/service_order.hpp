/// Orders by what is known or predicted of the GPU time that jobs take: Gittins' index, and
/// predictions of given error.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// Gittins' index of a job that has attained some service, of which the distribution of all jobs'
/// services is known: the largest chance to end within a further quantum over what that quantum
/// takes, sup over D of P(S - a <= D | S > a) / E[min(S - a, D) | S > a]. Source: Gu et al. 2019
/// (Tiresias), NSDI, section 3.2.2; Aalto, Ayesta and Righter 2009, Queueing Systems 63, section 2.
class GittinsIndex {
 public:
  /// `services`: samples of the distribution, in any unit, above 0. `ends`: where a quantum may
  /// end, in attained service, beside the largest sample; at all samples it is the supremum.
  GittinsIndex(std::vector<double> services, std::vector<double> ends);

  /// In 1 over that unit; 0 where no sample is above `attained`.
  [[nodiscard]] double at(double attained) const;

 private:
  std::vector<double> services_, ends_;  ///< rising
  std::vector<double> sums_;             ///< of the first 0, 1, ... services
};

/// The index at the beginning of each level of attained GPU time (QueueSpec::levels), the first
/// from 0 on, by the services of all of a queue's jobs: duration x GPUs, in GPU seconds. Jobs
/// change places where they fall a level, so that quanta end there.
std::vector<double> gittins_of_levels(const QueueSpec& spec);

/// GPU seconds that each job is predicted to take: duration x GPUs x exp(QueueSpec::estimate_sigma
/// x z), z standard normal, drawn once for each job. Source: Hu et al. 2021 (Helios), SC, section
/// 4.2, of which quasi-shortest-service-first puts the least prediction first.
std::vector<double> predicted_services(const QueueSpec& spec);

}  // namespace lockstep
