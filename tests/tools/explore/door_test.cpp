// The server of `lockstep explore` without its sockets: who is turned away, and what states give.
#include "tools/explore/door.hpp"

#include <array>
#include <doctest/doctest.h>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tests/tools/ran.hpp"
#include "tools/explore/explore_page.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;
using Pairs = std::vector<std::pair<std::string, std::string>>;

const std::string kExploredJob = R"({"model": "llama3_8b", "stack": "megatron_core",
    "cluster": {"node": "dgx_h100", "nodes": 4},
    "parallelism": {"tensor": 4, "pipeline": 2, "data": 4, "virtual_stages": 2},
    "batch": {"sequences": 64, "micro": 1, "tokens": 4096},
    "expect": {"mfu": 0.4, "within": "90 %", "source": "assumed"}})";
const std::string kToken(32, 'a');
constexpr int kPort = 8080;

const PresetStore& explored_presets() {
  static const PresetStore presets;
  return presets;
}
const Explorer& small_explorer() {
  static const Explorer explorer("folder/job.json", kExploredJob, {}, explored_presets());
  return explorer;
}
DoorReply reply_to(const DoorRequest& request) {
  return Door(small_explorer(), "<p>page</p>", kToken, kPort).reply(request);
}
/// A request that is let in, for `what`.
DoorRequest let_in(const std::string& what, Pairs query = {}) {
  return {.method = "GET",
          .path = "/" + kToken + "/" + what,
          .headers = {{"host", "127.0.0.1:8080"}},
          .query = std::move(query)};
}
std::string mistake_of(const Pairs& query) {
  const DoorReply reply = reply_to(let_in("answer", query));
  CHECK(reply.status == 422);
  return Json::parse(reply.body).at("error").at("message");
}

}  // namespace

TEST_CASE("explore: the page is for a plain request of this address with its token") {
  const DoorReply page = reply_to(let_in(""));
  CHECK(page.status == 200);
  CHECK(page.body == "<p>page</p>");
  DoorRequest local = let_in("");
  local.headers = {{"host", "localhost:8080"},
                   {"origin", "http://localhost:8080"},
                   {"sec-fetch-site", "same-origin"}};
  CHECK(reply_to(local).status == 200);
}

TEST_CASE("explore: what is not is turned away with a status alone") {
  const auto turned_away = [](DoorRequest request, int status) {
    CAPTURE(request.path);
    const DoorReply reply = reply_to(request);
    CHECK(reply.status == status);
    CHECK(reply.body.empty());
    CHECK(reply.type.empty());
  };
  const auto with_header = [](const char* name, const char* value) {
    DoorRequest request = let_in("answer");
    request.headers.emplace_back(name, value);
    return request;
  };
  for (const char* method : {"POST", "PUT", "HEAD", "OPTIONS", "get", ""}) {
    DoorRequest request = let_in("answer");
    request.method = method;
    turned_away(request, 405);
  }
  for (const std::string& path :
       {std::string("/"), "/" + kToken, "/" + std::string(32, 'b') + "/", "/" + kToken + "a/",
        "//" + kToken + "/", kToken + "/", "/" + kToken + "/../answer", "/" + kToken + "/Answer",
        "/" + kToken + "/answer/", "/" + kToken + "//etc/passwd"}) {
    DoorRequest request = let_in("");
    request.path = path;
    turned_away(request, 404);
  }
  turned_away(with_header("host", "127.0.0.1:8080"), 400);
  turned_away(with_header("origin", "http://127.0.0.1:8081"), 403);
  turned_away(with_header("origin", "null"), 403);
  turned_away(with_header("sec-fetch-site", "same-site"), 403);
  turned_away(with_header("content-length", "1"), 413);
  turned_away(with_header("transfer-encoding", "chunked"), 400);
  turned_away(with_header("range", "bytes=0-"), 400);
  DoorRequest other = let_in("answer");
  other.headers = {{"host", "example.org"}};
  turned_away(other, 403);
  other.headers.clear();
  turned_away(other, 400);
  turned_away(let_in("explain"), 400);
}

TEST_CASE("explore: a token is new each time") {
  std::set<std::string> tokens;
  for (int i = 0; i < 20; ++i) tokens.insert(random_token());
  CHECK(tokens.size() == 20);
  for (const std::string& token : tokens) {
    CHECK(token.size() == 32);
    CHECK(token.find_first_not_of("0123456789abcdef") == std::string::npos);
  }
}

TEST_CASE("explore: an answer is that of the library to the scenario that is saved") {
  const Pairs query{{"cluster.nodes", "8"}, {"batch.micro", "2"}};
  const DoorReply saved = reply_to(let_in("explore.json", query));
  CHECK(saved.saved_as == "explore.json");
  const Json scenario = Json::parse(saved.body);
  CHECK(scenario["cluster"]["nodes"] == 8);
  CHECK_FALSE(scenario.contains("expect"));
  CHECK_FALSE(scenario["parallelism"].contains("data"));
  CHECK(scenario.contains("power"));
  const Json answer = Json::parse(reply_to(let_in("answer", query)).body);
  CHECK(answer["job"]["parallelism"]["data"] == 8);
  CHECK(answer["scenario"] == scenario);
  Json own{{"lockstep_version", answer["lockstep_version"]}};
  own.update(
      answer_text("explore.json", saved.body, explored_presets(), {.allow_oom = true}).json());
  CHECK(answer == own);
}

TEST_CASE("explore: a layout that is searched fits the state, and keeps what was chosen") {
  const Json found = Json::parse(
      reply_to(let_in("layout", {{"cluster.nodes", "2"}, {"parallelism.pipeline", "1"}})).body);
  CHECK(found["state"]["cluster.nodes"] == "2");
  Pairs query;
  for (const auto& [path, value] : found["state"].items()) {
    query.emplace_back(path, value.get<std::string>());
  }
  const Json answer = Json::parse(reply_to(let_in("answer", query)).body);
  CHECK(answer["memory_fits"] == true);
  CHECK(answer["gpus"] == 16);
}

TEST_CASE("explore: a state that cannot be is one line, and no request names a file") {
  CHECK(mistake_of({{"cluster.nodes", "0"}}) ==
        "explore#/cluster/nodes: found \"0\"; allowed: a whole number from 1 to 16384");
  CHECK(mistake_of({{"batch.micro", "2.5"}}) ==
        "explore#/batch/micro: found \"2.5\"; allowed: a whole number from 1 to 65536");
  CHECK(mistake_of({{"parallelism.sharding", "zero4"}}) ==
        "explore#/parallelism/sharding: found \"zero4\"; allowed: none, zero1, zero2, zero3. Did "
        "you mean \"zero1\"?");
  for (const char* path : {"cluster.node.gpu", "parallelism.schedule_file", "stack.preset",
                           "model.huggingface", "power.trace"}) {
    CHECK(mistake_of({{path, "/etc/passwd"}}).starts_with("explore: found \"" + std::string(path)));
  }
  for (const ExploreControl& control : small_explorer().controls()) {
    const std::string line = mistake_of({{std::string(control.path), "../../x.json"}});
    CAPTURE(line);
    CHECK(line.starts_with("explore#/"));
    CHECK(line.find("found \"../../x.json\"") != std::string::npos);
  }
  CHECK(mistake_of({{"parallelism.pipeline", "1"}}).find("#/parallelism/virtual_stages: found 2") !=
        std::string::npos);
}

TEST_CASE("explore: a tariff alone is money") {
  const Explorer explorer("folder/job.json", kExploredJob, {"power={}", "cost.usd_per_kwh=0.1"},
                          explored_presets());
  const DoorReply reply = Door(explorer, "<p>page</p>", kToken, kPort).reply(let_in("answer"));
  REQUIRE(reply.status == 200);
  const std::string page = explore_page(explorer);
  const Json bill = Json::parse(reply.body).at("power").at("bill");
  CHECK(!bill.contains("owned_usd"));
  for (const char* const name : {"energy_usd", "running_usd"}) {
    CHECK(bill.at(name).get<double>() > 0);
    CHECK(page.find(std::string("power.bill.") + name) != std::string::npos);
  }
}

TEST_CASE("lockstep explore: mistakes end it before it serves") {
  const auto error_of = [](std::vector<std::string> args) {
    args.insert(args.begin(), "explore");
    const Ran ran = lockstep_with(args);
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.out.empty());
    return ran.err;
  };
  CHECK(error_of({"--port", "0"}) ==
        "--port: found \"0\"; allowed: a whole number from 1 to 65535\n");
  CHECK(error_of({"--port", "http"}) ==
        "--port: found \"http\"; allowed: a whole number from 1 to 65535\n");
  CHECK(error_of({"llama3-405b-54days"}).find("#/run: found") != std::string::npos);
  CHECK(error_of({"llama3-405b-16"}).find("Did you mean") != std::string::npos);
}

}  // namespace lockstep::test
