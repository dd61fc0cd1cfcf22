#include "tools/views/tables/command_fields.hpp"

#include <array>

namespace lockstep {

std::span<const CommandFields> command_fields() {
  static constexpr std::array kAll{CommandFields{"compare", comparison_fields},
                                   CommandFields{"replay", replay_fields},
                                   CommandFields{"loggops", loggops_fields},
                                   CommandFields{"collectives", collective_fields},
                                   CommandFields{"traffic", traffic_fields},
                                   CommandFields{"tune", tune_fields},
                                   CommandFields{"tune_serving", serving_tune_fields},
                                   CommandFields{"plan", plan_fields},
                                   CommandFields{"plan_serving", serving_plan_fields},
                                   CommandFields{"learn", learnt_fields},
                                   CommandFields{"validate_rows", row_fields},
                                   CommandFields{"validate_points", point_fields},
                                   CommandFields{"validate_intervals", interval_check_fields},
                                   CommandFields{"validate_fit", profile_fit_fields}};
  return kAll;
}

}  // namespace lockstep
