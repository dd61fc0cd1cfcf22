#include "models/base/shared_memo.hpp"

#include <doctest/doctest.h>
#include <string>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

std::size_t length_of(const int& /*key*/, const std::string& text) { return text.size(); }
using Texts = SharedMemo<int, std::string>;

}  // namespace

TEST_CASE("shared memo: a value is made once for a key, and another one for another key") {
  Texts memo(100, length_of);
  int made = 0;
  const auto ask = [&](int key) {
    return *memo.get(key, [&] {
      ++made;
      return std::to_string(key);
    });
  };
  CHECK(ask(1) == "1");
  CHECK(ask(2) == "2");
  CHECK(ask(1) == "1");
  CHECK(made == 2);
}

TEST_CASE("shared memo: keys count among what it may hold") {
  using Lengths = SharedMemo<std::string, int>;
  Lengths memo(10, [](const std::string& key, const int& /*value*/) { return key.size(); });
  const auto ask = [&](const std::string& key) { return *memo.get(key, [] { return 1; }); };
  CHECK(ask("four") == 1);
  CHECK(memo.bytes() == 4);
  CHECK(ask("sixsix") == 1);
  CHECK(memo.bytes() == 10);
  CHECK(ask("one") == 1);  // instead of "four"
  CHECK(memo.bytes() == 9);
}

TEST_CASE("shared memo: above its bound it forgets what nobody has asked for longest") {
  Texts memo(10, length_of);
  int made = 0;
  const auto ask = [&](int key, std::size_t length) {
    const int before = made;
    const auto value = memo.get(key, [&] {
      ++made;
      return std::string(length, 'x');
    });
    CHECK(value->size() == length);
    CHECK(memo.bytes() <= 10);
    return made > before;
  };
  CHECK(ask(1, 4));
  CHECK(ask(2, 6));
  CHECK(memo.bytes() == 10);
  CHECK_FALSE(ask(1, 4));
  CHECK(ask(3, 1));  // instead of 2
  CHECK(memo.bytes() == 5);
  CHECK_FALSE(ask(1, 4));
  CHECK(ask(2, 6));
  CHECK(memo.bytes() == 10);  // 1 and 2: 3 was asked for longest ago
  CHECK(ask(4, 11));          // more than all that it may hold
  CHECK(memo.bytes() == 10);
  CHECK_FALSE(ask(2, 6));
}

TEST_CASE("shared memo: threads that ask at once get the values of their keys") {
  Texts memo(30, length_of);
  constexpr int kKeys = 20, kCalls = 2000;
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&memo, &wrong, t] {
      for (int i = 0; i < kCalls; ++i) {
        const int key = (i * (static_cast<int>(t) + 1)) % kKeys;
        const auto value = memo.get(key, [key] { return std::to_string(key); });
        if (*value != std::to_string(key)) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
  CHECK(memo.bytes() <= 30);
}

}  // namespace lockstep
