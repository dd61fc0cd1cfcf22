#include "tests/support/simulated_subnet.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <unistd.h>

#include "tests/support/source_tree.hpp"

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;

// opensm lies where only administrators look.
const std::string kPath = "PATH=\"$PATH:/usr/sbin:/sbin\"; export PATH; ";
constexpr std::string_view kPrompt = "sim>";

/// The library that turns a tool's access to hardware into messages to ibsim.
std::string umad2sim() {
  for (const std::string_view folder : {"/usr/lib", "/usr/local/lib"}) {
    std::error_code none;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
      const fs::path file = entry.path() / "umad2sim/libumad2sim.so";
      if (fs::exists(file, none)) return file.string();
    }
  }
  return "";
}

std::string contents(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + 1)) {
    ++n;
  }
  return n;
}

std::string quoted(const std::string& path) { return "'" + path + "'"; }

}  // namespace

std::string SimulatedSubnet::missing() {
  for (const std::string tool : {"ibsim", "opensm", "ibnetdiscover", "dump_fts"}) {
    if (run_in_source_tree(kPath + "command -v " + tool + " >/dev/null").status != 0) {
      return "no " + tool + "; tools/setup --test installs it";
    }
  }
  return umad2sim().empty() ? "no libumad2sim.so; tools/setup --test installs it" : "";
}

SimulatedSubnet::SimulatedSubnet(std::string_view net) {
  // Names of sockets are short and shared by the machine; the folder's own is unique.
  socket_ = "ibsim-" + fs::path(folder_.path()).filename().string();
  folder_.write("net", net);
  folder_.write("opensm.conf", "");
  // Its standard input is our pipe: it would end, or turn round and round, without one.
  simulator_ = popen((kPath + "cd " + quoted(folder_.path()) + " && IBSIM_SOCKNAME=" + socket_ +
                      " exec timeout -k 1 120 ibsim -s -N 60000 -S 10000 -P 400000 net"
                      " >ibsim.log 2>&1")
                         .c_str(),
                     "w");
  if (simulator_ == nullptr) throw std::runtime_error("cannot start ibsim");
  try {
    wait_for_prompts(1);
  } catch (...) {
    pclose(simulator_);
    throw;
  }
}

SimulatedSubnet::~SimulatedSubnet() {
  std::fputs("quit\n", simulator_);
  pclose(simulator_);
}

std::string SimulatedSubnet::log() const {
  return contents(fs::path(folder_.path()) / "ibsim.log");
}

void SimulatedSubnet::wait_for_prompts(std::size_t prompts) const {
  constexpr int kTries = 3000;  // of 10 ms
  for (int i = 0; i < kTries; ++i) {
    const std::string text = log();
    if (count(text, kPrompt) >= prompts) return;
    if (text.find("parsing failed") != std::string::npos) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const std::string text = log();
  throw std::runtime_error("ibsim: " + text.substr(text.size() < 400 ? 0 : text.size() - 400));
}

void SimulatedSubnet::console(const std::string& command) {
  const std::size_t before = count(log(), kPrompt);
  std::fputs((command + "\n").c_str(), simulator_);
  std::fflush(simulator_);
  wait_for_prompts(before + 1);
}

std::string SimulatedSubnet::shell(const std::string& command) const {
  const CommandResult result = run_in_source_tree(
      kPath + "cd " + quoted(folder_.path()) + " && IBSIM_SOCKNAME=" + socket_ +
      " OSM_TMP_DIR=. OSM_CACHE_DIR=. timeout -k 1 100 env LD_PRELOAD=" + umad2sim() + " " +
      command + " 2>errors");
  if (result.status != 0) {
    throw std::runtime_error(
        command + " failed: " + contents(fs::path(folder_.path()) / "errors").substr(0, 400));
  }
  return result.output;
}

OpensmRun SimulatedSubnet::opensm(std::string_view engine,
                                  const std::vector<std::uint64_t>& root_guids) {
  const fs::path folder = folder_.path();
  fs::remove(folder / "opensm.log");
  fs::remove(folder / "opensm-lfts.dump");
  std::string roots;
  for (const std::uint64_t guid : root_guids) roots += fmt::format("0x{:x}\n", guid);
  folder_.write("roots", roots);
  // -o: one sweep; 0x43: errors, what it does, and dumps of its tables.
  (void)shell("opensm -F opensm.conf -R " + std::string(engine) +
              (root_guids.empty() ? "" : " -a roots") + " -o -f opensm.log -D 0x43 >opensm.out");
  const std::string text = contents(folder / "opensm.log");
  const std::size_t end = text.find(" tables configured on all switches");
  if (end == std::string::npos) throw std::runtime_error("opensm configured nothing: " + text);
  const std::size_t begin = text.rfind(' ', end - 1) + 1;
  return {.lfts = contents(folder / "opensm-lfts.dump"), .engine = text.substr(begin, end - begin)};
}

std::string SimulatedSubnet::diagnose(const std::string& tool) const { return shell(tool); }

}  // namespace lockstep::test
