#include "sim/serving/serve.hpp"

#include "sim/serving/serving_process.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kAskEvery = 1 << 12;  // events between calls of `go_on`

}  // namespace

ServeResult serve(const ServePlan& plan, std::vector<ServedRequest>& requests,
                  const std::function<bool(std::size_t)>& go_on) {
  ServingRun run(plan, requests);
  std::size_t handled = 0;
  while (!run.over() && run.next() != ServingRun::kNothing) {
    run.handle(run.next());
    if (++handled % kAskEvery == 0 && go_on && !go_on(run.ended())) return run.close(true);
  }
  return run.close(false);
}

ServeResult serve(const ServePlan& plan, std::vector<ServedRequest>& requests, KvFlows& flows,
                  const std::function<bool(std::size_t)>& go_on) {
  ServingRun run(plan, requests, &flows);
  ServingProcess process(run, flows, go_on);
  Engine engine(flows.network());
  engine.add(process);
  (void)engine.run();
  return run.close(process.stopped());
}

}  // namespace lockstep
