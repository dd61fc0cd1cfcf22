#pragma once
namespace tbb {
class task_arena {
 public:
  static constexpr int automatic = -1;
  explicit task_arena(int = automatic) {}
  template <class Work>
  auto execute(Work&& work) {
    return work();
  }
  int max_concurrency() const { return 1; }
};
namespace this_task_arena {
inline int max_concurrency() { return 1; }
inline int current_thread_index() { return 0; }
template <class Work>
auto isolate(Work&& work) {
  return work();
}
}  // namespace this_task_arena
}  // namespace tbb
