#include "tools/calibrate/cuda/bench.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "tools/calibrate/timing.hpp"

namespace lockstep {
namespace {

/// assumed: a card that waited for the host needs it to come back to its highest clock. The rests
/// between repeats are too short to lose it.
constexpr Seconds kWaking{0.01};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
void rest(Seconds pause) {
  std::this_thread::sleep_for(std::chrono::duration<double>(pause.base_units()));
}

}  // namespace

Watch::Watch(const Nvml* nvml) : nvml_(nvml), start_(now()) {
  if (nvml_ != nullptr) energy_ = nvml_->energy();
}

void Watch::look() {
  constexpr double kBetweenLooks = 0.01;
  if (nvml_ == nullptr || now() - looked_ < kBetweenLooks) return;
  looked_ = now();
  const CardState state = nvml_->state();
  mhz_ += state.sm_mhz;
  watts_ += state.watts;
  ++looks_;
}

CardState Watch::finish() const {
  if (nvml_ == nullptr) return {};
  CardState out = nvml_->state();
  if (looks_ > 0) {
    out.sm_mhz = mhz_ / looks_;
    out.watts = watts_ / looks_;
  }
  // The energy counter is exact where the driver's power is a mean over the last second.
  const std::optional<Joules> energy = nvml_->energy();
  const double elapsed = now() - start_;
  if (energy && energy_ && *energy > *energy_ && elapsed > 0) {
    out.watts = (*energy - *energy_).base_units() / elapsed;
  }
  return out;
}

Bench::Bench(std::size_t l2, std::size_t inputs, std::size_t outputs, std::unique_ptr<Nvml> nvml)
    : l2_(l2), inputs_(inputs), outputs_(outputs), nvml_(std::move(nvml)) {}

std::byte* Bench::operands(ElementFormat format) {
  if (format_ != format) {
    fill_normal(inputs_.at(0), 8 * inputs_.size() / bits_of(format), format, stream_.get());
    stream_.wait();
    format_ = format;
  }
  return inputs_.at(0);
}

int Bench::sets(std::size_t in, std::size_t out) const {
  if (in > inputs_.size() || out > outputs_.size()) {
    throw TaskFailed("its buffers do not fit into the card's memory");
  }
  const auto of = [](std::size_t x) { return static_cast<double>(x); };
  const int wanted = rotating_sets(of(in + out), of(l2_), of(inputs_.size() + outputs_.size()));
  const std::size_t fitting = std::min(inputs_.size() / in, outputs_.size() / out);
  return std::min(wanted, static_cast<int>(std::min<std::size_t>(fitting, 1 << 20)));
}

CardState Bench::state() const { return nvml_ == nullptr ? CardState{} : nvml_->state(); }

/// Roughly, to know how many launches a sample takes. The first launches load the kernel.
double Bench::once(const Launch& launch, int sets) {
  constexpr int kTries = 3;
  const Event begin, end;
  launch(0);
  stream_.wait();
  begin.record(stream_);
  for (int i = 0; i < kTries; ++i) launch(i % sets);
  end.record(stream_);
  end.wait();
  return std::max(end.seconds_since(begin) / kTries, 1e-7);
}

Graph Bench::graph_of(const Launch& launch, int launches, int sets) {
  return {stream_, [&] {
            for (int i = 0; i < launches; ++i) launch(i % sets);
          }};
}

Samples Bench::burst(const Launch& launch, int sets) {
  const Seconds one{once(launch, sets)};
  const Repeats repeats = burst_repeats(one, sets);
  const Graph graph = graph_of(launch, repeats.launches, sets);
  for (Seconds t; t < kWaking; t += repeats.launches * one) graph.launch(stream_);
  stream_.wait();
  const Event begin, end;
  Watch watch(nvml());
  Samples out;
  for (int i = 0; i < repeats.samples; ++i) {
    rest(repeats.pause);
    graph.launch(stream_);
    begin.record(stream_);
    graph.launch(stream_);
    end.record(stream_);
    watch.look();
    end.wait();
    out.seconds.push_back(end.seconds_since(begin) / repeats.launches);
  }
  out.state = watch.finish();
  return out;
}

Samples Bench::sustained(const Launch& launch, int sets, const Pace& pace) {
  constexpr std::size_t kInFlight = 4;  // graphs in the queue: the card never waits for the host
  const int launches = sustained_launches(Seconds{once(launch, sets)}, sets);
  const Graph graph = graph_of(launch, launches, sets);
  const std::array<Event, kInFlight + 1> events;
  const auto event = [&](std::size_t i) -> const Event& { return events[i % events.size()]; };

  Samples out;
  std::optional<Watch> watch;
  const double start = now();
  event(0).record(stream_);
  for (std::size_t i = 1;; ++i) {
    graph.launch(stream_);
    event(i).record(stream_);
    if (i < kInFlight) continue;
    const std::size_t done = i - kInFlight + 1;
    event(done).wait();
    const double elapsed = now() - start;
    if (elapsed < pace.warm.base_units()) continue;
    if (!watch) watch.emplace(nvml());
    watch->look();
    out.seconds.push_back(event(done).seconds_since(event(done - 1)) / launches);
    if (elapsed >= (pace.warm + pace.timed).base_units()) break;
  }
  out.state = watch->finish();
  stream_.wait();
  return out;
}

}  // namespace lockstep
