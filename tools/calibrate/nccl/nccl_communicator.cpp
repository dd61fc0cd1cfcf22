#include "tools/calibrate/nccl/nccl_communicator.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <thread>
#include <unistd.h>

#include "sim/measured/statistics.hpp"
#include "tools/calibrate/cuda/bench.hpp"
#include "tools/calibrate/cuda/cards.hpp"
#include "tools/calibrate/hang_guard.hpp"
#include "tools/calibrate/nccl/local_gpu.hpp"
#include "tools/calibrate/nccl/pattern.hpp"
#include "tools/calibrate/rendezvous.hpp"

namespace lockstep {
namespace {

/// For ranks to come, for a call of NCCL, for work to end: what is not there by then never comes.
/// Long enough for a network file system to show new files, a minute by default (nfs(5), acdirmax).
constexpr Seconds kPatience{120};
/// Of the memory that is free on the card with the least: what is sent, and what is received. NCCL
/// takes buffers of its own for each peer.
constexpr double kBufferShare = 0.3;
constexpr Bytes kMostBuffer = gibibytes(8);
constexpr std::size_t kFloat = sizeof(float);

double steady_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
void pause_for(Seconds time) {
  std::this_thread::sleep_for(std::chrono::duration<double>(time.base_units()));
}

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
      leave(true);
      throw;
    }
  }

 public:
  NcclCommunicator(const NcclLibrary& nccl, std::vector<std::unique_ptr<LocalGpu>> gpus,
                   const Launch& launch, const ncclUniqueId& id)
      : nccl_(nccl),
        gpus_(std::move(gpus)),
        ranks_(launch.ranks > 1 ? launch.ranks : static_cast<int>(gpus_.size())),
        guard_([rank = gpus_.front()->rank](const char* call) {
          std::fputs(fmt::format("lockstep-calibrate: rank {}: {} did not come back within {:.0f} "
                                 "s; is every rank still there?\n",
                                 rank, call, kPatience.base_units())
                         .c_str(),
                     stderr);
          std::_Exit(1);
        }) {
    try {
      join(id);
      learn_names();
      take_buffers();
      describe(launch);
    } catch (...) {
      leave(true);
      throw;
    }
  }
  ~NcclCommunicator() override { leave(false); }

  [[nodiscard]] const CommunicatorFacts& facts() const override { return facts_; }

  std::vector<double> agree(std::vector<double> values) override {
    return or_abort([&] { return largest(values); });
  }
  Samples measure(const CollectiveTask& task) override {
    return or_abort([&] {
      verify(task);
      return time(task);
    });
  }
  OverlapTimes overlap(const OverlapTask& task) override {
    // Freed behind an abort: memory is not given back while a collective waits for a dead rank.
    BesideWorks works;
    return or_abort([&] { return overlapped(task, works); });
  }

 private:
  void join(const ncclUniqueId& id) {
    together("ncclCommInitRank",
             [&](LocalGpu& gpu) { return nccl_.comm_init_rank(&gpu.comm, ranks_, id, gpu.rank); });
  }

  /// Ends the communicators; afterwards there are none.
  void leave(bool failed) {
    const HangGuard::Watched watched(guard_, failed ? "ncclCommAbort" : "ncclCommDestroy",
                                     kPatience);
    for (const auto& gpu : gpus_) {
      if (gpu->comm == nullptr) continue;
      (void)cudaSetDevice(gpu->device);
      (void)(failed ? nccl_.comm_abort(gpu->comm) : nccl_.comm_destroy(gpu->comm));
      gpu->comm = nullptr;
    }
  }

  /// Calls once for each GPU of this process, as one to NCCL.
  template <class Call>
  void together(const char* name, const Call& call) {
    const HangGuard::Watched watched(guard_, name, kPatience);
    nccl_.check(nccl_.group_start(), "ncclGroupStart");
    ncclResult_t status = ncclSuccess;
    for (const auto& gpu : gpus_) {
      // A group that was begun has to be ended, whatever a call gives.
      if (cudaSetDevice(gpu->device) != cudaSuccess) status = ncclUnhandledCudaError;
      if (status == ncclSuccess) status = call(*gpu);
    }
    const ncclResult_t end = nccl_.group_end();
    nccl_.check(status, name);
    nccl_.check(end, name);
  }
  template <class Call>
  void each(const Call& call) {
    for (const auto& gpu : gpus_) {
      gpu->use();
      call(*gpu);
    }
  }

  /// Waits for the ranks' streams, and looks meanwhile whether a rank is gone.
  void wait() {
    const double start = steady_now();
    each([&](const LocalGpu& gpu) { wait_for(gpu, gpu.stream, start); });
  }
  void wait_for(const LocalGpu& gpu, const Stream& stream, double start) {
    constexpr Seconds kBetweenLooks{50e-6};
    for (;;) {
      const cudaError_t status = cudaStreamQuery(stream.get());
      if (status == cudaSuccess) return;
      if (status != cudaErrorNotReady) check(status, "cudaStreamQuery");
      (void)cudaGetLastError();  // "not ready" is no error of the next launch
      ncclResult_t state = ncclSuccess;
      nccl_.check(nccl_.comm_get_async_error(gpu.comm, &state), "ncclCommGetAsyncError");
      if (state != ncclInProgress) nccl_.check(state, "a collective");
      if (steady_now() - start > kPatience.base_units()) {
        throw CardError(
            fmt::format("a collective did not end within {:.0f} s", kPatience.base_units()));
      }
      pause_for(kBetweenLooks);
    }
  }

  std::vector<double> largest(std::vector<double> values) {
    assert(!values.empty() && values.size() <= LocalGpu::kMostAgreed);
    const std::size_t bytes = values.size() * sizeof(double);
    each([&](const LocalGpu& gpu) {
      std::memcpy(gpu.host_numbers(), values.data(), bytes);
      check(cudaMemcpyAsync(gpu.numbers(), gpu.host_numbers(), bytes, cudaMemcpyHostToDevice,
                            gpu.stream.get()),
            "cudaMemcpyAsync");
    });
    together("ncclAllReduce", [&](const LocalGpu& gpu) {
      return nccl_.all_reduce(gpu.numbers(), gpu.numbers(), values.size(), ncclDouble, ncclMax,
                              gpu.comm, gpu.stream.get());
    });
    each([&](const LocalGpu& gpu) {
      check(cudaMemcpyAsync(gpu.host_numbers(), gpu.numbers(), bytes, cudaMemcpyDeviceToHost,
                            gpu.stream.get()),
            "cudaMemcpyAsync");
    });
    wait();
    std::memcpy(values.data(), gpus_.front()->host_numbers(), bytes);
    return values;
  }

  /// Host and card of every rank.
  void learn_names() {
    const std::string host = host_label();
    const std::size_t all = LocalGpu::kLabel * static_cast<std::size_t>(ranks_);
    const auto place = [](const LocalGpu& gpu) {
      return gpu.labels->at(LocalGpu::kLabel * static_cast<std::size_t>(gpu.rank));
    };
    each([&](LocalGpu& gpu) {
      std::array<char, LocalGpu::kLabel> own{};
      const std::string text = host + "\n" + gpu.name;
      std::copy_n(text.begin(), std::min(text.size(), own.size() - 1), own.begin());
      gpu.labels = std::make_unique<DeviceMemory>(all);
      check(cudaMemcpyAsync(place(gpu), own.data(), own.size(), cudaMemcpyHostToDevice,
                            gpu.stream.get()),
            "cudaMemcpyAsync");
      gpu.stream.wait();
    });
    together("ncclAllGather", [&](const LocalGpu& gpu) {
      return nccl_.all_gather(place(gpu), gpu.labels->at(0), LocalGpu::kLabel, ncclChar, gpu.comm,
                              gpu.stream.get());
    });
    wait();
    gpus_.front()->use();
    const std::vector<char> bytes =
        fetch<char>(gpus_.front()->labels->at(0), all, gpus_.front()->stream);
    for (std::size_t at = 0; at < all; at += LocalGpu::kLabel) {
      const std::string text(&bytes[at], strnlen(&bytes[at], LocalGpu::kLabel));
      const std::size_t split = std::min(text.find('\n'), text.size());
      facts_.hosts.push_back(text.substr(0, split));
      facts_.devices.push_back(text.substr(std::min(split + 1, text.size())));
    }
    facts_.rank = gpus_.front()->rank;
    each([](LocalGpu& gpu) { gpu.labels.reset(); });
  }

  /// As large on every rank.
  void take_buffers() {
    double least = kMostBuffer.base_units();
    each([&](const LocalGpu&) {
      std::size_t free = 0, total = 0;
      check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
      least = std::min(least, kBufferShare * static_cast<double>(free));
    });
    const auto bytes = static_cast<std::size_t>(-largest({-least}).front());
    each([&](LocalGpu& gpu) {
      gpu.sent = std::make_unique<DeviceMemory>(bytes);
      gpu.received = std::make_unique<DeviceMemory>(bytes);
    });
    facts_.room = Bytes{static_cast<double>(bytes)};
  }

  void describe(const Launch& launch) {
    auto& c = facts_.conditions;
    c.emplace_back("device", gpus_.front()->name);
    c.emplace_back("launched by", launch.launcher.empty()
                                      ? "nobody: one process drives all GPUs, and small sizes "
                                        "wait for its launches"
                                      : launch.launcher + ", a process for each GPU");
    c.emplace_back("NCCL", nccl_.version());
    for (char** variable = environ; *variable != nullptr; ++variable) {
      const std::string_view text = *variable;
      const std::size_t equals = std::min(text.find('='), text.size() - 1);
      if (text.starts_with("NCCL_")) {
        c.emplace_back(text.substr(0, equals), text.substr(equals + 1));
      }
    }
    add_versions(gpus_.front()->nvml.get(), c);
    c.emplace_back("data", "single precision, summed; results out of place, all of them checked");
  }

  [[nodiscard]] std::size_t elements(const CollectiveTask& task) const {
    return static_cast<std::size_t>(task.size.base_units()) / kFloat;
  }
  [[nodiscard]] std::size_t share(const CollectiveTask& task) const {
    return elements(task) / static_cast<std::size_t>(ranks_);
  }
  [[nodiscard]] int next_rank(int rank) const { return (rank + 1) % ranks_; }
  [[nodiscard]] int rank_before(int rank) const { return (rank + ranks_ - 1) % ranks_; }

  /// Enqueues it once on every GPU of this process.
  void enqueue(const CollectiveTask& task) {
    together(kNcclCalls[static_cast<std::size_t>(task.op)],
             [&](const LocalGpu& gpu) { return call(task, gpu); });
  }
  static constexpr std::array kNcclCalls{"ncclAllReduce",   "ncclAllGather", "ncclReduceScatter",
                                         "ncclSend to all", "ncclBroadcast", "ncclSend",
                                         "ncclReduce"};

  [[nodiscard]] ncclResult_t call(const CollectiveTask& task, const LocalGpu& gpu) const {
    const std::byte* const in = gpu.sent->at(0);
    std::byte* const out = gpu.received->at(0);
    cudaStream_t stream = gpu.stream.get();
    const std::size_t part = share(task);
    switch (task.op) {
      case CollectiveOp::all_reduce:
        return nccl_.all_reduce(in, out, elements(task), ncclFloat, ncclSum, gpu.comm, stream);
      case CollectiveOp::all_gather:
        return nccl_.all_gather(in, out, part, ncclFloat, gpu.comm, stream);
      case CollectiveOp::reduce_scatter:
        return nccl_.reduce_scatter(in, out, part, ncclFloat, ncclSum, gpu.comm, stream);
      case CollectiveOp::all_to_all:
        for (int peer = 0; peer < ranks_; ++peer) {
          const std::size_t at = static_cast<std::size_t>(peer) * part * kFloat;
          ncclResult_t status = nccl_.send(in + at, part, ncclFloat, peer, gpu.comm, stream);
          if (status == ncclSuccess) {
            status = nccl_.receive(out + at, part, ncclFloat, peer, gpu.comm, stream);
          }
          if (status != ncclSuccess) return status;
        }
        return ncclSuccess;
      case CollectiveOp::send_receive: {
        const ncclResult_t status =
            nccl_.send(in, elements(task), ncclFloat, next_rank(gpu.rank), gpu.comm, stream);
        if (status != ncclSuccess) return status;
        return nccl_.receive(out, elements(task), ncclFloat, rank_before(gpu.rank), gpu.comm,
                             stream);
      }
      default:
        return ncclInvalidArgument;
    }
  }

  [[nodiscard]] ExpectedPattern expected(const CollectiveTask& task, int rank) const {
    const auto all = static_cast<std::int64_t>(elements(task));
    const auto part = static_cast<std::int64_t>(share(task));
    double sum = 0;
    for (int r = 0; r < ranks_; ++r) sum += rank_part(r);
    switch (task.op) {
      case CollectiveOp::all_gather:
        return {.count = all, .block = part, .first = 0, .offset = 0, .scale = 1};
      case CollectiveOp::all_to_all:
        return {.count = all, .block = part, .first = rank * part, .offset = 0, .scale = 1};
      case CollectiveOp::reduce_scatter:
        return {.count = part,
                .block = 0,
                .first = rank * part,
                .offset = sum,
                .scale = static_cast<double>(ranks_)};
      case CollectiveOp::send_receive:
        return {.count = all,
                .block = 0,
                .first = 0,
                .offset = static_cast<double>(rank_part(rank_before(rank))),
                .scale = 1};
      default:
        return {.count = all,
                .block = 0,
                .first = 0,
                .offset = sum,
                .scale = static_cast<double>(ranks_)};
    }
  }

  /// Runs it once and looks at every element. Throws TaskFailed on all ranks.
  void verify(const CollectiveTask& task) {
    const auto bytes = static_cast<std::size_t>(task.size.base_units());
    each([&](const LocalGpu& gpu) {
      fill_pattern(reinterpret_cast<float*>(gpu.sent->at(0)),
                   static_cast<std::int64_t>(elements(task)), gpu.rank, gpu.stream.get());
      check(cudaMemsetAsync(gpu.received->at(0), 0xFF, bytes, gpu.stream.get()), "cudaMemsetAsync");
    });
    enqueue(task);
    each([&](const LocalGpu& gpu) {
      auto* const count = reinterpret_cast<unsigned long long*>(gpu.control.at(0));
      check(cudaMemsetAsync(count, 0, sizeof(*count), gpu.stream.get()), "cudaMemsetAsync");
      count_wrong(reinterpret_cast<const float*>(gpu.received->at(0)), expected(task, gpu.rank),
                  count, gpu.stream.get());
      check(cudaMemcpyAsync(gpu.host_control.data(), count, sizeof(*count), cudaMemcpyDeviceToHost,
                            gpu.stream.get()),
            "cudaMemcpyAsync");
    });
    wait();
    double most = 0;
    each([&](const LocalGpu& gpu) {
      unsigned long long count = 0;
      std::memcpy(&count, gpu.host_control.data(), sizeof(count));
      most = std::max(most, static_cast<double>(count));
    });
    most = largest({most}).front();
    if (most > 0) throw TaskFailed(fmt::format("wrong result: {:.0f} elements of a rank", most));
  }

  /// Of one, in a row of `launches` behind one that is not timed; the slowest GPU of this process.
  double timed(const CollectiveTask& task, int launches, Watch& watch) {
    enqueue(task);
    each([](const LocalGpu& gpu) { gpu.begin.record(gpu.stream); });
    for (int i = 0; i < launches; ++i) enqueue(task);
    each([](const LocalGpu& gpu) { gpu.end.record(gpu.stream); });
    watch.look();
    wait();
    double slowest = 0;
    each([&](const LocalGpu& gpu) {
      slowest = std::max(slowest, gpu.end.seconds_since(gpu.begin) / launches);
    });
    return slowest;
  }

  Samples time(const CollectiveTask& task) {
    constexpr int kTries = 3;
    constexpr double kShortest = 1e-7;  // below the resolution of events
    Watch watch(gpus_.front()->nvml.get());
    const Seconds one{std::max(largest({timed(task, kTries, watch)}).front(), kShortest)};
    const CollectiveRepeats repeats = collective_repeats(one);
    Samples out;
    for (int i = 0; i < repeats.samples; ++i) {
      out.seconds.push_back(timed(task, repeats.launches, watch));
    }
    out.state = watch.finish();
    out.seconds = largest(out.seconds);
    return out;
  }

  template <class Call>
  void each(const BesideWorks& works, const Call& call) {
    std::size_t next = 0;
    each([&](const LocalGpu& gpu) { call(gpu, *works[next++]); });
  }
  void wait(const BesideWorks& works) {
    wait();
    const double start = steady_now();
    each(works,
         [&](const LocalGpu& gpu, const BesideWork& work) { wait_for(gpu, work.stream, start); });
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
  double product_beside(const BesideWorks& works, const CollectiveTask& task, int products,
                        int collectives) {
    enqueue(task);
    each(works, [](const LocalGpu& gpu, const BesideWork& work) { work.go.record(gpu.stream); });
    for (int i = 0; i < collectives; ++i) enqueue(task);
    each(works, [&](const LocalGpu&, const BesideWork& work) {
      check(cudaStreamWaitEvent(work.stream.get(), work.go.get(), 0), "cudaStreamWaitEvent");
      work.begin.record(work.stream);
      work.enqueue(products);
      work.end.record(work.stream);
    });
    wait(works);
    return product_time(works, products);
  }
  /// The products begin before the collectives and are enough to outlast them.
  double collective_beside(const BesideWorks& works, const CollectiveTask& task, int products,
                           int collectives, Watch& watch) {
    each(works, [&](const LocalGpu&, const BesideWork& work) { work.enqueue(products); });
    const double one = timed(task, collectives, watch);
    wait(works);
    return one;
  }

  OverlapTimes overlapped(const OverlapTask& task, BesideWorks& works) {
    constexpr double kSampled = 0.03;  // seconds: long beside the start of either
    constexpr double kOutlasting = 3;  // what beside it is slowed down by at most, with a margin
    constexpr int kOverlapSamples = 5, kTries = 3;
    each([&](const LocalGpu&) { works.push_back(std::make_unique<BesideWork>(task.product)); });
    Watch watch(nullptr);
    const auto median_of = [&](const auto& sample) {
      std::vector<double> seconds;
      seconds.reserve(kOverlapSamples);
      for (int i = 0; i < kOverlapSamples; ++i) seconds.push_back(sample());
      return median(largest(seconds));
    };
    const auto count = [](double seconds, double one) {
      return static_cast<int>(std::clamp(std::ceil(seconds / one), 1.0, 1000.0));
    };
    const std::vector<double> rough =
        largest({product_alone(works, kTries), timed(task.collective, kTries, watch)});
    const int products = count(kSampled, rough[0]), collectives = count(kSampled, rough[1]);
    const int products_outlast = count(kOutlasting * collectives * rough[1], rough[0]);
    const int collectives_outlast = count(kOutlasting * products * rough[0], rough[1]);

    OverlapTimes out;
    out.product_alone = Seconds{median_of([&] { return product_alone(works, products); })};
    out.collective_alone =
        Seconds{median_of([&] { return timed(task.collective, collectives, watch); })};
    out.product_beside = Seconds{median_of(
        [&] { return product_beside(works, task.collective, products, collectives_outlast); })};
    out.collective_beside = Seconds{median_of([&] {
      return collective_beside(works, task.collective, products_outlast, collectives, watch);
    })};
    return out;
  }

  const NcclLibrary& nccl_;
  std::vector<std::unique_ptr<LocalGpu>> gpus_;
  int ranks_;
  HangGuard guard_;
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
  return std::make_unique<NcclCommunicator>(*nccl, std::move(gpus), launch, id);
}

}  // namespace lockstep
