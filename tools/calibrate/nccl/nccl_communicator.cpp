#include "tools/calibrate/nccl/nccl_communicator.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <unistd.h>

#include "sim/measured/statistics.hpp"
#include "tools/calibrate/cuda/bench.hpp"
#include "tools/calibrate/cuda/cards.hpp"
#include "tools/calibrate/nccl/nccl_call.hpp"
#include "tools/calibrate/nccl/ranks.hpp"
#include "tools/calibrate/rendezvous.hpp"

namespace lockstep {
namespace {

/// Of the memory that is free on the card with the least: what is sent, and what is received. NCCL
/// takes buffers of its own for each peer.
constexpr double kBufferShare = 0.3;
constexpr Bytes kMostBuffer = gibibytes(8);

/// The machine: its name, and what tells it from another one of that name.
std::string host_label() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) name.front() = '\0';
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return fmt::format("{} {}", name.data(), boot.substr(0, 8));
}

class NcclCommunicator : public Communicator {
  using BesideWorks = std::vector<std::unique_ptr<BesideWork>>;  ///< of each GPU of this process

  /// After an error nothing can be done with the communicator; the others learn it from its end.
  template <class Action>
  auto or_abort(const Action& action) {
    try {
      return action();
    } catch (const CardError&) {
      ranks_.leave(true);
      throw;
    }
  }

 public:
  NcclCommunicator(const NcclLibrary& nccl, std::vector<std::unique_ptr<LocalGpu>> gpus,
                   const CommunicatorStart& start, const ncclUniqueId& id)
      : ranks_(nccl, std::move(gpus), start) {
    try {
      ranks_.join(id, &LocalGpu::comm);
      learn_names();
      take_buffers();
      describe(start.launch);
    } catch (...) {
      ranks_.leave(true);
      throw;
    }
  }
  ~NcclCommunicator() override { ranks_.leave(false); }

  [[nodiscard]] const CommunicatorFacts& facts() const override { return facts_; }

  std::vector<double> agree(std::vector<double> values) override {
    return or_abort([&] { return ranks_.largest(values); });
  }
  Samples measure(const CollectiveTask& task) override {
    return or_abort([&] { return checked({task, {}, ranks_.count()}, std::nullopt); });
  }
  OverlapTimes overlap(const OverlapTask& task) override {
    // Freed behind an abort: memory is not given back while a collective waits for a dead rank.
    BesideWorks works;
    return or_abort([&] { return overlapped(task, works); });
  }
  VariantTimes vary(const VariantTask& task) override {
    return or_abort([&] { return varied(task); });
  }

 private:
  /// Host and card of every rank.
  void learn_names() {
    const std::string host = host_label();
    const std::size_t all = LocalGpu::kLabel * static_cast<std::size_t>(ranks_.count());
    const auto place = [](const LocalGpu& gpu) {
      return gpu.labels->at(LocalGpu::kLabel * static_cast<std::size_t>(gpu.rank));
    };
    ranks_.each([&](LocalGpu& gpu) {
      std::array<char, LocalGpu::kLabel> own{};
      const std::string text = host + "\n" + gpu.name;
      std::copy_n(text.begin(), std::min(text.size(), own.size() - 1), own.begin());
      gpu.labels = std::make_unique<DeviceMemory>(all);
      check(cudaMemcpyAsync(place(gpu), own.data(), own.size(), cudaMemcpyHostToDevice,
                            gpu.stream.get()),
            "cudaMemcpyAsync");
      gpu.stream.wait();
    });
    ranks_.together("ncclAllGather", [&](const LocalGpu& gpu) {
      return ranks_.nccl().all_gather(place(gpu), gpu.labels->at(0), LocalGpu::kLabel, ncclChar,
                                      gpu.comm, gpu.stream.get());
    });
    ranks_.wait();
    ranks_.first().use();
    const std::vector<char> bytes =
        fetch<char>(ranks_.first().labels->at(0), all, ranks_.first().stream);
    for (std::size_t at = 0; at < all; at += LocalGpu::kLabel) {
      const std::string text(&bytes[at], strnlen(&bytes[at], LocalGpu::kLabel));
      const std::size_t split = std::min(text.find('\n'), text.size());
      facts_.hosts.push_back(text.substr(0, split));
      facts_.devices.push_back(text.substr(std::min(split + 1, text.size())));
    }
    facts_.rank = ranks_.first().rank;
    ranks_.each([](LocalGpu& gpu) { gpu.labels.reset(); });
  }

  /// As large on every rank.
  void take_buffers() {
    double least = kMostBuffer.base_units();
    ranks_.each([&](const LocalGpu&) {
      std::size_t free = 0, total = 0;
      check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
      least = std::min(least, kBufferShare * static_cast<double>(free));
    });
    const auto bytes = static_cast<std::size_t>(-ranks_.largest({-least}).front());
    ranks_.each([&](LocalGpu& gpu) {
      gpu.sent = std::make_unique<DeviceMemory>(bytes);
      gpu.received = std::make_unique<DeviceMemory>(bytes);
    });
    facts_.room = Bytes{static_cast<double>(bytes)};
  }

  void describe(const Launch& launch) {
    auto& c = facts_.conditions;
    c.emplace_back("device", ranks_.first().name);
    c.emplace_back("launched by", launch.launcher.empty()
                                      ? "nobody: one process drives all GPUs, and small sizes "
                                        "wait for its launches"
                                      : launch.launcher + ", a process for each GPU");
    c.emplace_back("NCCL", ranks_.nccl().version());
    for (char** variable = environ; *variable != nullptr; ++variable) {
      const std::string_view text = *variable;
      const std::size_t equals = std::min(text.find('='), text.size() - 1);
      if (text.starts_with("NCCL_")) {
        c.emplace_back(text.substr(0, equals), text.substr(equals + 1));
      }
    }
    add_versions(ranks_.first().nvml.get(), c);
    c.emplace_back("data", "single precision, summed; results out of place, all of them checked");
  }

  /// Enqueues it once on every GPU of this process.
  void enqueue(const NcclCall& call) {
    ranks_.together(call.name(),
                    [&](const LocalGpu& gpu) { return call.start(ranks_.nccl(), gpu); });
  }

  /// Runs it once and looks at every element. Throws TaskFailed on all ranks.
  void verify(const NcclCall& call) {
    const auto stream_of = [&](const LocalGpu& gpu) { return (gpu.*call.form().stream).get(); };
    const PatternFormat format = call.form().format();
    ranks_.each([&](const LocalGpu& gpu) {
      // In place the input lies in it: so it comes after.
      check(cudaMemsetAsync(gpu.received->at(call.form().offset), 0xFF, call.result_bytes(),
                            stream_of(gpu)),
            "cudaMemsetAsync");
      fill_pattern(call.input(gpu), format, static_cast<std::int64_t>(call.input_elements()),
                   gpu.rank, stream_of(gpu));
    });
    enqueue(call);
    ranks_.each([&](const LocalGpu& gpu) {
      auto* const count = reinterpret_cast<unsigned long long*>(gpu.control.at(0));
      check(cudaMemsetAsync(count, 0, sizeof(*count), stream_of(gpu)), "cudaMemsetAsync");
      count_wrong(call.result(gpu), format, call.expected(gpu.rank), count, stream_of(gpu));
      check(cudaMemcpyAsync(gpu.host_control.data(), count, sizeof(*count), cudaMemcpyDeviceToHost,
                            stream_of(gpu)),
            "cudaMemcpyAsync");
    });
    ranks_.wait();
    double most = 0;
    ranks_.each([&](const LocalGpu& gpu) {
      unsigned long long count = 0;
      std::memcpy(&count, gpu.host_control.data(), sizeof(count));
      most = std::max(most, static_cast<double>(count));
    });
    most = ranks_.largest({most}).front();
    if (most > 0) throw TaskFailed(fmt::format("wrong result: {:.0f} elements of a rank", most));
  }

  /// Of one, in a row of `launches` behind one that is not timed; the slowest GPU of this process.
  double timed(const NcclCall& call, int launches, Watch& watch) {
    return timed(call, std::nullopt, launches, watch);
  }
  /// The same of two at once: until both have ended.
  double timed(const NcclCall& call, const std::optional<NcclCall>& other, int launches,
               Watch& watch) {
    const auto stream_of = [&](const LocalGpu& gpu) -> const Stream& {
      return gpu.*call.form().stream;
    };
    enqueue(call);
    if (other) enqueue(*other);
    ranks_.each([&](const LocalGpu& gpu) {
      gpu.begin.record(stream_of(gpu));
      if (other) (gpu.*other->form().stream).wait_behind(gpu.begin.get());
    });
    for (int i = 0; i < launches; ++i) {
      enqueue(call);
      if (other) enqueue(*other);
    }
    ranks_.each([&](const LocalGpu& gpu) {
      if (other) {
        gpu.other_end.record(gpu.*other->form().stream);
        stream_of(gpu).wait_behind(gpu.other_end.get());
      }
      gpu.end.record(stream_of(gpu));
    });
    watch.look();
    ranks_.wait();
    double slowest = 0;
    ranks_.each([&](const LocalGpu& gpu) {
      slowest = std::max(slowest, gpu.end.seconds_since(gpu.begin) / launches);
    });
    return slowest;
  }

  Samples checked(const NcclCall& call, const std::optional<NcclCall>& other) {
    constexpr int kTries = 3;
    constexpr double kShortest = 1e-7;  // below the resolution of events
    verify(call);
    if (other) verify(*other);
    Watch watch(ranks_.first().nvml.get());
    const double rough = timed(call, other, kTries, watch);
    const Seconds one{std::max(ranks_.largest({rough}).front(), kShortest)};
    const CollectiveRepeats repeats = collective_repeats(one);
    Samples out;
    for (int i = 0; i < repeats.samples; ++i) {
      out.seconds.push_back(timed(call, other, repeats.launches, watch));
    }
    out.state = watch.finish();
    out.seconds = ranks_.largest(out.seconds);
    return out;
  }

  VariantTimes varied(const VariantTask& task) {
    CallForm form;
    form.bf16 = task.variant == CollectiveVariant::bf16;
    form.in_place = task.variant == CollectiveVariant::in_place;
    form.uneven = task.variant == CollectiveVariant::uneven;
    std::optional<NcclCall> other;
    if (task.variant == CollectiveVariant::pair) {
      ranks_.join_second();
      const std::size_t half = static_cast<std::size_t>(facts_.room.base_units()) / 2;
      other.emplace(task.collective,
                    CallForm{.stream = &LocalGpu::urgent,
                             .comm = &LocalGpu::second_comm,
                             .offset = half / kAlignment * kAlignment},
                    ranks_.count());
    }
    const auto median_of = [](const Samples& samples) { return Seconds{median(samples.seconds)}; };
    const NcclCall plain(task.collective, {}, ranks_.count());
    const NcclCall varied_call(task.collective, form, ranks_.count());
    VariantTimes out;
    out.plain = median_of(checked(plain, std::nullopt));
    out.varied = median_of(checked(varied_call, other));
    return out;
  }

  template <class Call>
  void each(const BesideWorks& works, const Call& call) {
    std::size_t next = 0;
    ranks_.each([&](const LocalGpu& gpu) { call(gpu, *works[next++]); });
  }
  void wait(const BesideWorks& works) {
    ranks_.wait();
    const double start = steady_now();
    each(works, [&](const LocalGpu& gpu, const BesideWork& work) {
      ranks_.wait_for(gpu, work.stream, start);
    });
  }
  /// Of one product; the slowest GPU of this process.
  double product_time(const BesideWorks& works, int count) {
    double slowest = 0;
    each(works, [&](const LocalGpu&, const BesideWork& work) {
      slowest = std::max(slowest, work.end.seconds_since(work.begin) / count);
    });
    return slowest;
  }

  double product_alone(const BesideWorks& works, int products) {
    each(works, [&](const LocalGpu&, const BesideWork& work) {
      work.enqueue(1);
      work.begin.record(work.stream);
      work.enqueue(products);
      work.end.record(work.stream);
    });
    wait(works);
    return product_time(works, products);
  }
  /// The collectives begin before the products and are enough to outlast them.
  double product_beside(const BesideWorks& works, const NcclCall& collective, int products,
                        int collectives) {
    enqueue(collective);
    each(works, [&](const LocalGpu& gpu, const BesideWork& work) {
      work.go.record(gpu.*collective.form().stream);
    });
    for (int i = 0; i < collectives; ++i) enqueue(collective);
    each(works, [&](const LocalGpu&, const BesideWork& work) {
      work.stream.wait_behind(work.go.get());
      work.begin.record(work.stream);
      work.enqueue(products);
      work.end.record(work.stream);
    });
    wait(works);
    return product_time(works, products);
  }
  /// The products begin before the collectives and are enough to outlast them.
  double collective_beside(const BesideWorks& works, const NcclCall& collective, int products,
                           int collectives, Watch& watch) {
    each(works, [&](const LocalGpu&, const BesideWork& work) { work.enqueue(products); });
    const double one = timed(collective, collectives, watch);
    wait(works);
    return one;
  }

  /// A rank without memory for them would leave the others waiting for it: all learn of it here.
  void make_works(const ProductTask& product, BesideWorks& works) {
    std::string refusal;
    try {
      ranks_.each([&](const LocalGpu&) { works.push_back(std::make_unique<BesideWork>(product)); });
    } catch (const TaskFailed& e) {
      refusal = e.what();
    }
    if (ranks_.largest({refusal.empty() ? 0.0 : 1.0}).front() == 0) return;
    throw TaskFailed(refusal.empty() ? "another rank has no memory or no algorithm for it"
                                     : refusal);
  }

  OverlapTimes overlapped(const OverlapTask& task, BesideWorks& works) {
    constexpr double kSampled = 0.03;  // seconds: long beside the start of either
    constexpr double kOutlasting = 3;  // what beside it is slowed down by at most, with a margin
    constexpr int kOverlapSamples = 5, kTries = 3;
    make_works(task.product, works);
    CallForm form;
    if (task.high_priority) form.stream = &LocalGpu::urgent;
    const NcclCall collective(task.collective, form, ranks_.count());
    Watch watch(nullptr);
    const auto median_of = [&](const auto& sample) {
      std::vector<double> seconds;
      seconds.reserve(kOverlapSamples);
      for (int i = 0; i < kOverlapSamples; ++i) seconds.push_back(sample());
      return median(ranks_.largest(seconds));
    };
    const auto count = [](double seconds, double one) {
      return static_cast<int>(std::clamp(std::ceil(seconds / one), 1.0, 1000.0));
    };
    const std::vector<double> rough =
        ranks_.largest({product_alone(works, kTries), timed(collective, kTries, watch)});
    const int products = count(kSampled, rough[0]), collectives = count(kSampled, rough[1]);
    const int products_outlast = count(kOutlasting * collectives * rough[1], rough[0]);
    const int collectives_outlast = count(kOutlasting * products * rough[0], rough[1]);

    OverlapTimes out;
    out.product_alone = Seconds{median_of([&] { return product_alone(works, products); })};
    out.collective_alone =
        Seconds{median_of([&] { return timed(collective, collectives, watch); })};
    out.product_beside = Seconds{median_of(
        [&] { return product_beside(works, collective, products, collectives_outlast); })};
    out.collective_beside = Seconds{median_of([&] {
      return collective_beside(works, collective, products_outlast, collectives, watch);
    })};
    return out;
  }

  NcclRanks ranks_;
  CommunicatorFacts facts_;
};

/// The cards that this process is to drive, all of them idle.
std::vector<std::unique_ptr<LocalGpu>> open_cards(const Launch& launch) {
  const int cards = card_count();
  std::vector<int> devices;
  if (launch.ranks > 1) {
    devices.push_back(card_of(launch, cards));
  } else {
    for (int device = 0; device < cards; ++device) devices.push_back(device);
  }
  // All are looked at before the first of them is in use by us.
  std::vector<std::unique_ptr<Nvml>> nvml;
  for (const int device : devices) {
    nvml.push_back(nvml_of(device));
    require_idle(device, nvml.back().get(), properties_of(device));
  }
  std::vector<std::unique_ptr<LocalGpu>> gpus;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    check(cudaSetDevice(devices[i]), "cudaSetDevice");
    gpus.push_back(std::make_unique<LocalGpu>(devices[i], launch.rank + static_cast<int>(i),
                                              properties_of(devices[i]).name, std::move(nvml[i])));
  }
  return gpus;
}

}  // namespace

LocalGpu::LocalGpu(int its_device, int its_rank, std::string its_name,
                   std::unique_ptr<Nvml> its_nvml)
    : device(its_device), rank(its_rank), name(std::move(its_name)), nvml(std::move(its_nvml)) {}

std::unique_ptr<Communicator> open_nccl_communicator(const CommunicatorStart& start) {
  const Launch& launch = start.launch;
  const NcclLibrary* nccl = nullptr;
  std::vector<std::unique_ptr<LocalGpu>> gpus;
  ncclUniqueId id{};
  std::string obstacle;
  try {
    if (launch.ranks > kMostSummedRanks) {
      throw CardUnavailable(fmt::format("more than {} ranks", kMostSummedRanks));
    }
    gpus = open_cards(launch);
    nccl = &nccl_library();
    if (launch.rank == 0) nccl->check(nccl->get_unique_id(&id), "ncclGetUniqueId");
  } catch (const std::runtime_error& e) {
    if (launch.ranks == 1) throw CardUnavailable(e.what());
    obstacle = e.what();
  }
  if (launch.ranks == 1 && gpus.size() < 2) throw CardUnavailable(std::string(kTooFewCards));
  if (launch.ranks > 1) {
    Rendezvous rendezvous(start.id_file, launch.rank, launch.ranks, kPatience,
                          {.seconds = steady_now, .wait = pause_for});
    const std::string met =
        rendezvous.meet(std::string(id.internal, sizeof(id.internal)), obstacle);
    std::copy_n(met.begin(), std::min(met.size(), sizeof(id.internal)), id.internal);
  }
  assert(nccl != nullptr && "a rank with an obstacle does not get here");
  return std::make_unique<NcclCommunicator>(*nccl, std::move(gpus), start, id);
}

}  // namespace lockstep
