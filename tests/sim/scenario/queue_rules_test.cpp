// Qualities of service, accounts, reservations, listed jobs: what is read, and what is refused how.
#include "sim/scenario/queue_rules.hpp"

#include <doctest/doctest.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json queue_with_rules() {
  return Json::parse(R"({
    "cluster": {"node": "dgx_h100", "nodes": 4},
    "queue": {
      "order": "multifactor", "admission": "slurm",
      "priority": {"age": 10, "fair_share": 20, "half_life": "1 d"},
      "preemption": {"mode": "qos", "exempt": "1 min", "reorder_count": 2},
      "qos": [{"name": "low"},
              {"name": "high", "priority": 9, "preempts": ["low"], "grace": "1 min",
               "limits": {"grp_tres": "gres/gpu=16,node=2", "max_wall": "2 h",
                          "max_jobs_per_user": 3, "grp_tres_mins": "gres/gpu=10"}}],
      "accounts": [{"name": "a", "shares": 3, "limits": {"max_jobs": 5}},
                   {"name": "b", "parent": "a", "users": [{"name": "u", "shares": "parent"}]}],
      "partitions": [{"name": "p", "hosts": "n[1,3]", "tier": 2, "qos": "high"},
                     {"name": "q", "nodes": 1, "first": 1}],
      "reservations": [{"name": "r", "start": "1 h", "end": "2 h", "nodes": 2}],
      "breaks": [{"node": 3, "at": "1 h", "repair": "10 min"}],
      "jobs": [{"job": {"name": "x", "runs": "1 h", "gpus": 8, "tasks": 3, "at_once": 2}},
               {"job": {"name": "y", "runs": "1 h", "dependency": "afterok:x", "reservation": "r",
                        "qos": "low", "partition": "p", "user": "u", "account": "b"}}]
    }
  })");
}

std::string refusal_of(const Json& scenario) {
  try {
    (void)read_queue(JsonCursor::parse("t.json", scenario.dump()), test::presets());
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("queue rules: what a scenario says is what the simulation gets") {
  const QueueSpec spec =
      read_queue(JsonCursor::parse("t.json", queue_with_rules().dump()), test::presets());
  CHECK(spec.qos.at(2).preempts == std::vector<std::uint16_t>{1});
  CHECK(spec.qos.at(2).limits.grp_tres.gpus == 16);
  CHECK(spec.qos.at(2).limits.grp_tres.nodes == 2);
  CHECK(spec.qos.at(2).limits.grp_gpu_s == 600);
  CHECK(spec.associations.at(1).parent == 0);
  CHECK(spec.associations.at(2).is_user);
  CHECK(spec.associations.at(2).shares == Association::kParent);
  CHECK(spec.partitions.at(1).nodes == std::vector{0, 2});
  CHECK(spec.partitions.at(1).qos == 2);
  CHECK(spec.reservations.at(0).nodes == std::vector{0, 1});
  CHECK(spec.arrays.at(0).most_running == 2);
  CHECK(spec.job_name(2) == "x_2");
  CHECK(spec.terms.at(3).dependencies.at(0).of_array);
  CHECK(spec.terms.at(3).reservation == 1);
  CHECK(spec.breaks.at(0).node == 3);
}

TEST_CASE("queue rules: mistakes are told by place, with what is allowed") {
  const auto says = [](const std::string& pointer, const Json& value, const std::string& text) {
    Json scenario = queue_with_rules();
    scenario[Json::json_pointer(pointer)] = value;
    const std::string message = refusal_of(scenario);
    CHECK_MESSAGE(message.find(text) != std::string::npos, message);
  };
  says("/queue/qos/0/name", "high", "t.json#/queue/qos/1/name");
  says("/queue/qos/1/preempts/0", "lwo", "Did you mean \"low\"?");
  says("/queue/qos/0/preempts", Json::array({"high"}), "does not preempt this one in turn");
  says("/queue/qos/1/limits/grp_tres", "mem=4", "gres/gpu=16,node=2,cpu=64");
  says("/queue/qos/1/limits/grp_tres_mins", "cpu=4", "minutes of gres/gpu alone");
  says("/queue/accounts/1/parent", "c", "t.json#/queue/accounts/1/parent: found \"c\"");
  says("/queue/accounts/0/shares", "mother", "a number, or \"parent\"");
  says("/queue/accounts/1/name", "a", "each account once");
  says("/queue/partitions/0/hosts", "n[1-9]", "of nodes 1 to 4");
  says("/queue/partitions/1/hosts", "n1", "either \"nodes\" or \"hosts\"");
  says("/queue/reservations/0/end", "30 min", "a time after its start");
  says("/queue/reservations/0/duration", "30 min", "either \"duration\" or \"end\"");
  says("/queue/breaks/0/node", 4, "below 4, the cluster's nodes");
  says("/queue/jobs/1/job/dependency", "afterok:z", "found job y with dependency \"afterok:z\"");
  says("/queue/jobs/1/job/dependency", "afterwards:x", "dependencies such as");
  says("/queue/jobs/1/job/dependency", "afterok:y", "jobs that were submitted before");
  says("/queue/jobs/1/job/dependency", "afterok:x,afterany:x?afterok:x", "either , or ?");
  says("/queue/jobs/1/job/dependency", "aftercorr:x", "aftercorr of an array, in an array");
  says("/queue/jobs/1/job/reservation", "s", "t.json#/queue/jobs/1/job/reservation: found \"s\"");
  says("/queue/jobs/1/job/at_once", 2, "no such key without \"tasks\"");
  says("/queue/jobs/1/job/gpus", 24, "found job y of 24 GPUs; allowed: at most 16");
  says("/queue/jobs/0/trace", Json::object(), "t.json#/queue/jobs/0");
  says("/queue/order", "fifo", "no such key unless \"order\" is \"multifactor\"");
  says("/queue/admission", "easy", "none with backfilling");
  says("/queue/preemption/mode", "evict", "qos or partition, which Slurm has");
  says("/queue/qos/1/preempts", Json::array(), "qos with one that \"preempts\" another");
}

}  // namespace lockstep
