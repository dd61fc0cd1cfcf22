#include "models/generation/kernel_laws.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

constexpr double kSixteenBit = 2;  // bytes

/// Of a format that the card lacks, the next wider one: weights are widened on their way. Shares of
/// it were measured without a cap, under which products slow as the clock does.

/// Of attention, which a cap slows by the third root only, as under every sustained load
/// (models/kernels).
FlopsPerSecond attention_peak(const GpuSpec& gpu) {
  return std::cbrt(gpu.capped_clock) * std::max(gpu.peak_bf16, gpu.peak_fp16);
}

double square(double x) { return x * x; }

}  // namespace

double operand_bytes(WeightFormat format) {
  if (format == WeightFormat::fp8) return 1;
  return format == WeightFormat::fp4 ? kWeightBytes[2] : kSixteenBit;
}

void HostLaw::slow(double factor) {
  for (Seconds* time :
       {&request, &step, &sequence, &stage, &prompt, &prompt_layer, &prompt_latent}) {
    *time = factor * *time;
  }
}

WeightFormat weight_format(Precision precision) {
  switch (precision) {
    case Precision::fp8:
    case Precision::mxfp8:
      return WeightFormat::fp8;
    case Precision::nvfp4:
      return WeightFormat::fp4;
    default:
      return WeightFormat::bf16;
  }
}

FlopsPerSecond peak_of(const GpuSpec& gpu, WeightFormat format) {
  const FlopsPerSecond half = std::max(gpu.peak_bf16, gpu.peak_fp16);
  const FlopsPerSecond byte = gpu.peak_fp8 > FlopsPerSecond{} ? gpu.peak_fp8 : half;
  FlopsPerSecond peak = half;
  if (format == WeightFormat::fp8) peak = byte;
  if (format == WeightFormat::fp4 && gpu.peak_fp4 > FlopsPerSecond{}) peak = gpu.peak_fp4;
  return gpu.capped_clock * peak;
}

KernelWork product_work(WeightFormat format, double rows, double in, double out) {
  const auto f = static_cast<std::size_t>(format);
  return {.flops = Flops{2 * rows * in * out},
          .moved = Bytes{kWeightBytes[f] * in * out + operand_bytes(format) * rows * in +
                         kSixteenBit * rows * out}};
}

Seconds product_time(const KernelLaws& laws, const GpuSpec& gpu, WeightFormat format, double rows,
                     double in, double out) {
  const ProductLaw& law = laws.products[static_cast<std::size_t>(format)];
  const KernelWork work = product_work(format, rows, in, out);
  const double reading = work.moved / (law.bandwidth * gpu.hbm_bandwidth) / Seconds{1};
  const double arithmetic = work.flops / (law.efficiency * peak_of(gpu, format)) / Seconds{1};
  const double both = std::sqrt(std::sqrt(square(square(reading)) + square(square(arithmetic))));
  return law.launch + Seconds{both};
}

double experts_met(double count, double per_token, double tokens, double popularity) {
  const double share = per_token / count;
  if (popularity == 0 || share >= 1) return count * (1 - std::pow(1 - share, tokens));
  // A beta distribution's parameters; at the most, all tokens have the same experts.
  constexpr double kAllTheSame = 1e-9;
  const double both = std::max((1 - share) / (share * popularity) - 1, kAllTheSame);
  const double unmet = (1 - share) * both;
  const auto log_gamma = [](double x) {
    int sign = 0;
    return lgamma_r(x, &sign);  // std::lgamma writes to a variable of all threads
  };
  const double missed = std::exp(log_gamma(unmet + tokens) - log_gamma(unmet) + log_gamma(both) -
                                 log_gamma(both + tokens));
  return count * (1 - missed);
}

Seconds experts_time(const KernelLaws& laws, const GpuSpec& gpu, WeightFormat format,
                     const ExpertsCall& call) {
  const auto f = static_cast<std::size_t>(format);
  const ExpertsLaw& law = laws.experts[f];
  const Seconds weights =
      Bytes{kWeightBytes[f] * call.met * call.weights} / (law.bandwidth * gpu.hbm_bandwidth);
  const double reading = (weights + call.met * law.expert) / Seconds{1};
  const double computed = call.copies + law.rows * call.met;
  const double arithmetic =
      Flops{2 * computed * call.weights} / (law.efficiency * peak_of(gpu, format)) / Seconds{1};
  const Bytes rows{call.copies * (call.hidden * (operand_bytes(format) + kSixteenBit) +
                                  2 * kSixteenBit * call.ffn)};
  return law.launch +
         Seconds{std::cbrt(reading * square(reading) + arithmetic * square(arithmetic))} +
         rows / (law.activations * gpu.hbm_bandwidth);
}

KernelWork experts_work(WeightFormat format, const ExpertsCall& call) {
  const double each = kWeightBytes[static_cast<std::size_t>(format)];
  return {.flops = Flops{2 * call.copies * call.weights},
          .moved = Bytes{each * call.met * call.weights +
                         call.copies * (call.hidden * (operand_bytes(format) + kSixteenBit) +
                                        2 * kSixteenBit * call.ffn)}};
}

Flops& flops_of(EngineWork& work, const GpuSpec& gpu, WeightFormat format) {
  const bool has_byte = gpu.peak_fp8 > FlopsPerSecond{};
  if (format == WeightFormat::fp8) return has_byte ? work.flops_8 : work.flops_16;
  const bool has_half_byte = gpu.peak_fp4 > FlopsPerSecond{};
  return format == WeightFormat::fp4 && has_half_byte ? work.flops_4 : work.flops_16;
}

Seconds cache_time(const CacheLaw& law, const GpuSpec& gpu, Bytes bytes, double blocks) {
  const double reading = bytes / (law.bandwidth * gpu.hbm_bandwidth) / Seconds{1};
  const double each = blocks / gpu.sm_count * law.block / Seconds{1};
  return law.launch + Seconds{std::sqrt(square(reading) + square(each))};
}

Seconds latent_time(const LatentLaw& law, const GpuSpec& gpu, Bytes bytes, Flops flops,
                    double sequences) {
  const double reading = bytes / (law.bandwidth * gpu.hbm_bandwidth) / Seconds{1};
  const double arithmetic = flops / (law.efficiency * attention_peak(gpu)) / Seconds{1};
  const double each = sequences / gpu.sm_count * law.block / Seconds{1};
  return law.launch + Seconds{std::sqrt(square(reading) + square(arithmetic) + square(each))};
}

Seconds prompt_time(const PromptLaw& law, const GpuSpec& gpu, Flops flops, double tokens) {
  const FlopsPerSecond rate = law.efficiency * attention_peak(gpu);
  return law.launch + (1 + law.ramp / std::max(tokens, 1.0)) * (flops / rate);
}

Seconds sum_time(const KernelLaws& laws, const GpuSpec& gpu, Bytes bytes, int ranks) {
  const double n = ranks;
  const auto of = [&](const SumLaw& law, double sent) {
    return law.base + n * law.per_rank + sent * bytes / (law.bandwidth * gpu.nvlink_bandwidth);
  };
  return std::min(of(laws.one_shot, n - 1), of(laws.two_shot, 2 * (n - 1) / n));
}

}  // namespace lockstep
