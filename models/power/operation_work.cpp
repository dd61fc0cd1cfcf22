#include "models/power/operation_work.hpp"

namespace lockstep {

EngineWork engine_work(const Operation& o) {
  EngineWork work;
  work.hbm = o.traffic;
  work.link = o.nvlink + o.network;
  (is_quantised(o.format) ? (o.format == Precision::nvfp4 ? work.flops_4 : work.flops_8)
                          : work.flops_16) = o.arithmetic;
  return work;
}

}  // namespace lockstep
