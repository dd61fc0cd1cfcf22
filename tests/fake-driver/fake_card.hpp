/// Cards that are not there: a clock of their own, streams, events and memory. The libraries beside
/// this one answer CUDA's, cuBLASLt's, cuDNN's, NCCL's and NVML's calls out of it.
///
/// Time passes only where the program sleeps, waits or calls: work takes what times.hpp says, and
/// eight minutes take seconds. All of it is on the program's main thread, as lockstep-calibrate
/// does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::fake {

// Answers, by environment variables.

/// How many cards there are: LOCKSTEP_FAKE_CARDS, else 1.
int cards();
/// Which: an H100, or with LOCKSTEP_FAKE_BLACKWELL=1 a B200. They are equally fast.
bool is_blackwell();
/// A whole number from an environment variable.
int setting(const char* name, int otherwise);
/// LOCKSTEP_FAKE_FAULTS lists calls that go wrong: "cudaMalloc 9 2, cudaEventSynchronize 20 hang".
/// The ninth cudaMalloc gives status 2, the twentieth cudaEventSynchronize never comes back; "9+":
/// and all after it. Every function that is asked for by name calls this first; 0: all is well.
int fault(const char* call);
/// Whether results of this kernel are to be wrong: its name holds LOCKSTEP_FAKE_WRONG.
bool is_wrong(const std::string& kernel);

// Time, in seconds.

double now();
/// Time that a call costs the host. LOCKSTEP_FAKE_SIGNAL "15 20" raises signal 15 after 20 s.
void pass(double seconds);
void wait_until(double instant);

// Streams and events; cudaStream_t and cudaEvent_t point to them.

struct Stream {
  double free_at = 0;     ///< when all that it has is done
  bool captures = false;  ///< into a graph: work takes place when that is launched
  double captured = 0;    ///< seconds of it
};
struct Event {
  double at = 0;
};
/// Enqueues work. LOCKSTEP_FAKE_RESTLESS "0.3 5" makes it up to 30 % longer, at random, in the
/// first 5 s; without the second number always.
void work(Stream& stream, double seconds);
/// When what is in the stream by now is done.
double done_at(const Stream& stream);

// Memory: of the host, and only where it is touched.

constexpr std::size_t kCardMemory = std::size_t{80} << 30;
/// What the driver keeps.
constexpr std::size_t kReserved = std::size_t{600} << 20;
/// Null: the current card is full.
void* allocate(std::size_t bytes);
void release(void* memory);
std::size_t used_memory();
/// Bytes of it are zero, or those at both ends have that value: nobody reads between.
void set_bytes(void* memory, int value, std::size_t bytes);

/// Ranks have filled what they send: the next collective moves it, and its repeats do not.
void note_pattern();
/// Whether that was since the last call.
bool take_pattern();

void choose_card(int card);
int chosen_card();

}  // namespace lockstep::fake
