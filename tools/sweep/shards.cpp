#include "tools/sweep/shards.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <ostream>
#include <unistd.h>

#include "models/base/input_error.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/progress.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".db";

std::string manifest_entry(const Manifest& manifest, std::string_view key) {
  const auto found = std::ranges::find(manifest, key, &Manifest::value_type::first);
  return found->second;
}

[[noreturn]] void fail_file(const std::string& path, const std::string& found) {
  throw InputError({.file = path,
                    .pointer = {},
                    .found = found,
                    .allowed = "a folder that can be written, with space on its disk",
                    .nearest = {}});
}

/// The files that are complete, by name.
std::vector<std::string> shard_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().string();
    if (path.ends_with(kSuffix)) files.push_back(path);
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

Shard parse_shard(const std::string& text) {
  Shard shard;
  const char* const end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  const bool slash = index.ec == std::errc{} && index.ptr != end && *index.ptr == '/';
  const auto count = std::from_chars(slash ? index.ptr + 1 : end, end, shard.count);
  if (!slash || count.ec != std::errc{} || count.ptr != end || shard.index < 0 ||
      shard.index >= shard.count) {
    throw UsageError(
        fmt::format("--shard: found {}; allowed: I/N with I from 0 to N - 1, such as "
                    "3/40",
                    in_quotes(text)));
  }
  return shard;
}

std::vector<std::uint32_t> points_of_shard(const std::vector<std::uint32_t>& numbers, Shard shard) {
  std::vector<std::uint32_t> out;
  for (auto i = static_cast<std::size_t>(shard.index); i < numbers.size();
       i += static_cast<std::size_t>(shard.count)) {
    out.push_back(numbers[i]);
  }
  return out;
}

std::string shard_folder(const SweepRun& run) {
  constexpr std::size_t kDigits = 16;  // enough of the digest to tell inputs apart
  const std::string input = manifest_entry(run.engine.manifest(), "input_sha256");
  return run.database + ".shards/" + input.substr(0, kDigits);
}

std::string shard_file(const SweepRun& run, Shard shard) {
  return fmt::format("{}/{}-of-{}{}", shard_folder(run), shard.index, shard.count, kSuffix);
}

Exit run_shard(const SweepRun& run, Shard shard) {
  const InterruptGuard guard;
  const std::string file = shard_file(run, shard);
  std::error_code error;
  if (fs::exists(file, error)) return Exit::ok;
  fs::create_directories(shard_folder(run), error);
  if (error) fail_file(shard_folder(run), error.message());
  // Nobody else's, should the same shard run twice at a time.
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string part = fmt::format("{}.part-{}-{}", file, host.data(), ::getpid());
  {
    const std::vector<std::uint32_t> numbers = points_of_shard(run.numbers, shard);
    Progress progress(run.console.err, "points", numbers.size(),
                      run.console.err_is_terminal && !run.quiet);
    ResultsDb results(part, run.sweep, run.engine.manifest(), ResultsDb::Journal::rollback);
    run.engine.simulate(
        numbers, results, [] { return !InterruptGuard::interrupted(); },
        [&] { progress.one_done(); });
  }
  if (InterruptGuard::interrupted()) {
    fs::remove(part, error);
    return Exit::interrupted;
  }
  fs::rename(part, file, error);
  if (error) fail_file(file, error.message());
  return Exit::ok;
}

void collect_shards(const SweepRun& run, ResultsDb& results, std::set<std::string>& taken) {
  for (const std::string& file : shard_files(shard_folder(run))) {
    if (taken.contains(file)) continue;
    results.merge(file);
    taken.insert(file);
  }
}

Exit collect(const SweepRun& run) {
  ResultsDb results(run.database, run.sweep, run.engine.manifest(),
                    ResultsDb::Journal::write_ahead);
  std::set<std::string> taken;
  collect_shards(run, results, taken);
  const std::size_t missing = run.engine.missing(run.numbers, results).size();
  if (missing == 0) {
    std::error_code error;
    fs::remove_all(shard_folder(run), error);
    fs::remove(run.database + ".shards", error);  // unless others are in it
    return Exit::ok;
  }
  run.console.err << fmt::format("{}: {} of {} points are missing after {} shards\n",
                                 terminal_line(run.database), missing, run.numbers.size(),
                                 taken.size());
  return Exit::bad_input;
}

ShellText shard_command(const SweepRun& run, const ParsedOptions& options, const ShellText& index,
                        int count, const ShellText& jobs) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  ShellText command = ShellText::write("{} sweep {} -o {} --shard {}/{} -j {} --quiet",
                                       error ? "lockstep" : program.string(), run.sweep.file,
                                       run.database, index, count, jobs);
  for (const std::string& folder : options.all("presets")) {
    command += ShellText::write(" --presets {}", folder);
  }
  if (options.has("stack")) command += ShellText::write(" --stack {}", options.get("stack"));
  for (const char* folding : {"fold", "unfold"}) {
    if (options.has(folding)) command += fmt::format(" --{}", folding);
  }
  return command;
}

void print_shard_commands(const SweepRun& run, const ParsedOptions& options, int count) {
  for (int i = 0; i < count; ++i) {
    std::error_code error;
    if (fs::exists(shard_file(run, {i, count}), error)) continue;
    const ShellText command =
        shard_command(run, options, ShellText::write("{}", i), count, ShellText::write("1"));
    // Who runs them takes a line for a command.
    if (command.str().find('\n') != std::string::npos) {
      throw InputError({.file = "--print-parallel",
                        .pointer = {},
                        .found = "a line break in the name of a file or folder",
                        .allowed = "names that fit on the line of a command",
                        .nearest = {}});
    }
    run.console.out << command.str() << "\n";
  }
}

std::vector<int> shards_with(const std::vector<std::uint32_t>& missing,
                             const std::vector<std::uint32_t>& numbers, int count) {
  std::vector<char> needed(static_cast<std::size_t>(count));
  for (const std::uint32_t number : missing) {
    const auto place = std::ranges::lower_bound(numbers, number) - numbers.begin();
    needed[static_cast<std::size_t>(place) % needed.size()] = 1;
  }
  std::vector<int> shards;
  for (int i = 0; i < count; ++i) {
    if (needed[static_cast<std::size_t>(i)]) shards.push_back(i);
  }
  return shards;
}

}  // namespace lockstep
