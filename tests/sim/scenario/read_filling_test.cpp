// Documents with "filling": what they say, and what is said of mistakes.
#include "sim/scenario/read_filling.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/openb_trace.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

const std::string kFillingSchema = LOCKSTEP_SOURCE_DIR "/scenarios/filling.schema.json";

nlohmann::ordered_json sound_filling() {
  return nlohmann::ordered_json::parse(R"({"filling": {
    "nodes": [{"count": 2, "cpus": 64, "memory": "256 GiB", "gpus": 4, "gpu_model": "T4"},
              {"cpus": 7.5, "memory": "1 GiB"}],
    "pods": [{"count": 3, "cpus": 4, "memory": "8 GiB", "gpus": 1, "gpu_milli": 250,
              "gpu_models": ["T4"]},
             {"cpus": 1}]}})");
}

FillingSpec filling_of(const nlohmann::ordered_json& document) {
  return read_filling(JsonCursor::parse("f.json", write_json(document)));
}

std::string filling_problem(const std::string& pointer, const nlohmann::ordered_json& value) {
  nlohmann::ordered_json document = sound_filling();
  document[nlohmann::ordered_json::json_pointer(pointer)] = value;
  try {
    (void)filling_of(document);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("filling: what a document says, and what it leaves out") {
  const FillingSpec spec = filling_of(sound_filling());
  REQUIRE(spec.nodes.size() == 2);
  CHECK(spec.nodes[0].cpu_milli + spec.nodes[1].cpu_milli == 71'500);
  REQUIRE(spec.pods.size() == 2);
  const PodShape& share = spec.pods[0].gpus == 1 ? spec.pods[0] : spec.pods[1];
  CHECK(share.count == 3);
  CHECK(share.memory_mib == 8192);
  CHECK(share.shares());
  CHECK(share.gpu_models == std::vector<std::string>{"T4"});
  CHECK(spec.policies.size() == 6);
  CHECK(spec.until == 1.3);
  CHECK(spec.at == 1);
  CHECK(spec.seeds == 10);
  nlohmann::ordered_json document = sound_filling();
  document["filling"]["policies"] = {"fgd", "random"};
  document["filling"]["at"] = "80 %";
  const FillingSpec two = filling_of(document);
  CHECK(two.policies == std::vector{FillingPolicy::fgd, FillingPolicy::random});
  CHECK(two.at == doctest::Approx(0.8));
}

TEST_CASE("filling: mistakes are named with their place and what is allowed") {
  const auto says = [](const std::string& pointer, const nlohmann::ordered_json& value,
                       const std::string& text) {
    const std::string said = filling_problem(pointer, value);
    CHECK_MESSAGE(said.find(text) != std::string::npos, said);
  };
  says("/filling/policies", {"fgd", "fgd"}, "f.json#/filling/policies");
  says("/filling/policies", {"fgc"}, "Did you mean \"fgd\"?");
  says("/filling/at", 2, "\"at\" is at most \"until\"");
  says("/filling/pods/0/gpu_models", {"T5"}, "Did you mean \"T4\"?");
  says("/filling/pods/1/gpu_milli", 500, "no such key without \"gpus\"");
  says("/filling/pods/0/gpus", 2, "only of a single GPU a share can be asked for");
  says("/filling/pods/0/gpu_milli", 1001, "f.json#/filling/pods/0/gpu_milli");
  says("/filling/pods", {{{"cpus", 1}}}, "at least one pod that asks for a GPU");
  says("/filling/nodes", {{{"cpus", 1}, {"memory", "1 GiB"}}}, "at least one node with a GPU");
  says("/filling/nodes/0/gpu_modell", "T4", "f.json#/filling/nodes/0/gpu_modell");
  says("/filling/pods/1/trace", "pods.csv", "LOCKSTEP_DATA");
  const std::string most = "at most what one of the nodes has";
  says("/filling/pods/1/gpus", 16, "f.json#/filling/pods/1/gpus: found 16; allowed: " + most);
  says("/filling/pods/0/cpus", 65, "f.json#/filling/pods/0/cpus: found 65; allowed: " + most);
  says("/filling/pods/0/memory", "257 GiB", "f.json#/filling/pods/0/memory");
  says("/filling/pods/1", {{"gpus", 8}, {"cpus", 100}}, "f.json#/filling/pods/1: ");
  CHECK(filling_problem("/filling/pods/1/gpus", 4).empty());
  says("/filling/nodes/0/count", 1'000'000, "2,000,000");
  nlohmann::ordered_json no_memory = sound_filling();
  no_memory["filling"]["nodes"][0].erase("memory");
  CHECK_THROWS_AS((void)filling_of(no_memory), InputError);
}

TEST_CASE("filling: openb's columns by both names, a document of them, and their mistakes") {
  std::vector<NodeShape> nodes, published_nodes;
  read_openb_nodes("n.csv", "node,cpu_milli,memory_mib,gpus,gpu_model\na,64000,1024,2,P100\n",
                   nodes);
  read_openb_nodes("n.csv", "sn,cpu_milli,memory_mib,gpu,model\nb,64000,1024,2,P100\n",
                   published_nodes);
  CHECK(nodes == published_nodes);
  std::vector<PodShape> pods, published;
  read_openb_pods("p.csv",
                  "pod,cpu_milli,memory_mib,gpus,gpu_milli,gpu_models\n0,500,64,1,460,\n"
                  "1,500,64,0,0,\n2,500,64,1,460,\n3,500,64,2,1000,T4|P100\n",
                  pods);
  read_openb_pods("p.csv",
                  "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\nx,500,64,1,460,,LS\n"
                  "y,500,64,0,0,,LS\nz,500,64,1,460,,BE\nw,500,64,2,1000,T4|P100|,LS\n",
                  published);
  CHECK(pods == published);
  unite_shapes(pods);
  REQUIRE(pods.size() == 3);

  FillingSpec spec;
  spec.nodes = nodes;
  spec.pods = pods;
  nlohmann::ordered_json document = filling_document(spec);
  document["filling"]["pods"].back()["gpu_models"] = {"P100"};
  spec.pods.back().gpu_models = {"P100"};
  const FillingSpec read = filling_of(document);
  CHECK(read.nodes == spec.nodes);
  CHECK(read.pods == spec.pods);

  CHECK_THROWS_WITH_AS(read_openb_pods("p.csv", "cpu_milli,memory_mib,gpus\n", pods),
                       doctest::Contains("p.csv: found no column \"gpu_milli\""), InputError);
  CHECK_THROWS_WITH_AS(
      read_openb_pods("p.csv", "cpu_milli,memory_mib,gpus,gpu_milli\n1,1,2,500\n", pods),
      doctest::Contains("p.csv, row 1"), InputError);
}

TEST_CASE("filling: a trace beside the document is read as what it says written out") {
  const test::TemporaryFolder folder;
  (void)folder.write("n.csv",
                     "cpu_milli,memory_mib,gpus,gpu_model\n64000,262144,4,T4\n"
                     "7500,1024,0,\n64000,262144,4,T4\n");
  nlohmann::ordered_json document = sound_filling();
  document["filling"]["nodes"] = {{{"trace", "n.csv"}}};
  const std::string path = folder.write("f.json", write_json(document));
  const JsonCursor root = JsonCursor::parse(path, write_json(document));
  CHECK(has_filling_traces(root));
  CHECK(read_filling(root).nodes == filling_of(sound_filling()).nodes);
  document["filling"]["nodes"][0]["trace"] = "none.csv";
  CHECK_FALSE(has_filling_traces(JsonCursor::parse(path, write_json(document))));
}

TEST_CASE("filling: pods of a trace that no node can take are told, with their share") {
  const test::TemporaryFolder folder;
  (void)folder.write("p.csv",
                     "cpu_milli,memory_mib,gpus,gpu_milli,gpu_models\n1000,64,4,1000,\n"
                     "1000,64,12,1000,\n1000,64,0,0,\n");
  nlohmann::ordered_json document = sound_filling();
  document["filling"]["pods"] = {{{"trace", "p.csv"}}};
  const std::string path = folder.write("f.json", write_json(document));
  const FillingSpec spec = read_filling(JsonCursor::parse(path, write_json(document)));
  REQUIRE(spec.assumptions.size() == 1);
  CHECK(spec.assumptions[0].find("1 of 3 ask for more") != std::string::npos);
  CHECK(spec.assumptions[0].find("75.0 % of the GPUs") != std::string::npos);
  CHECK(filling_of(sound_filling()).assumptions.empty());
}

// To write it: LOCKSTEP_WRITE_SCHEMA=1 build/tests/lockstep_tests -tc='filling.schema.json*'
TEST_CASE("filling.schema.json is what the reader declares") {
  const std::string text = write_json(filling_schema(), 2) + "\n";
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  if (std::getenv("LOCKSTEP_WRITE_SCHEMA") != nullptr) std::ofstream(kFillingSchema) << text;
  CHECK(read_text_file(kFillingSchema) == text);
}

}  // namespace lockstep
