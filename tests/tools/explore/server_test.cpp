// The sockets of `lockstep explore` beside clients that are slow on purpose. What they have sent
// lies in the kernel before the server takes them, and only what comes back counts: a machine that
// is busy takes longer over the same replies.
#include "tools/explore/server.hpp"

#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "sim/scenario/preset_store.hpp"

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;

constexpr int kClients = 50;  ///< several times the server's threads

class SlowClient {
 public:
  SlowClient(int port, std::string_view text) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as the interface wants it
    REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    REQUIRE(send(text));
  }
  SlowClient(SlowClient&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  SlowClient(const SlowClient&) = delete;
  SlowClient& operator=(const SlowClient&) = delete;
  SlowClient& operator=(SlowClient&&) = delete;
  ~SlowClient() {
    if (socket_ >= 0) ::close(socket_);
  }

  [[nodiscard]] bool send(std::string_view text) const {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  /// All that comes until the server says no more.
  [[nodiscard]] std::string said() const {
    std::string all;
    std::array<char, 4096> part{};
    for (ssize_t size = 0; (size = ::recv(socket_, part.data(), part.size(), 0)) > 0;) {
      all.append(part.data(), static_cast<std::size_t>(size));
    }
    return all;
  }
  /// Whether nothing has come so far, not even an end.
  [[nodiscard]] bool waits() const {
    char first = 0;
    return ::recv(socket_, &first, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
  }

 private:
  int socket_;
};

/// A server of its own for a test, once `begin` is called.
class Served {
 public:
  explicit Served(ServerPatience patience)
      : explorer_("job.json", R"({"model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 1},
            "parallelism": {"tensor": 8}, "batch": {"sequences": 8, "micro": 1, "tokens": 4096}})",
                  {}, presets_),
        server_(0, patience),
        door_(explorer_, "<p>page</p>", token_, server_.port()) {}
  ~Served() {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  void begin() {
    thread_ = std::thread([this] { server_.run(door_, [this] { return stopped_.load(); }); });
  }
  [[nodiscard]] std::string head() const {
    return fmt::format("GET /{}/ HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", token_, server_.port());
  }
  [[nodiscard]] std::vector<SlowClient> clients(std::string_view text) const {
    std::vector<SlowClient> out;
    for (int i = 0; i < kClients; ++i) out.emplace_back(server_.port(), text);
    return out;
  }
  [[nodiscard]] SlowClient client(std::string_view text) const { return {server_.port(), text}; }

 private:
  const std::string token_ = std::string(32, 'a');
  PresetStore presets_;
  Explorer explorer_;
  ExploreServer server_;
  Door door_;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

}  // namespace

TEST_CASE("explore: who is slow or silent holds up nobody else") {
  // For as long as the test takes: were each to hold a thread, no other would ever be answered.
  Served served({.head = 24h, .reply = 24h, .after = 24h});
  const std::vector<SlowClient> slow = served.clients(served.head()), silent = served.clients("");
  served.begin();
  const SlowClient other = served.client(served.head() + "\r\n");
  CHECK(other.said().starts_with("HTTP/1.1 200 "));
  for (const SlowClient& client : slow) CHECK(client.waits());
  for (const SlowClient& client : silent) CHECK(client.waits());
  // The rest of a head is taken whenever it comes.
  REQUIRE(slow.front().send("\r\n"));
  CHECK(slow.front().said().starts_with("HTTP/1.1 200 "));
}

TEST_CASE("explore: who is slow is told, however often a byte comes, who says nothing is left") {
  CHECK(ServerPatience{}.head == 2s);
  Served served({.head = 50ms, .reply = 24h, .after = 24h});
  const std::vector<SlowClient> slow = served.clients(served.head()), silent = served.clients("");
  const std::vector<SlowClient> dripping = served.clients(served.head() + "X: ");
  served.begin();
  // Bytes that come just as the time is over give nobody more of it.
  constexpr int kMost = 4000;  // a head has a limit too, of 8 KiB
  bool waits = true;
  for (int sent = 0; waits; ++sent) {
    waits = false;
    for (const SlowClient& client : dripping) {
      if (!client.waits()) continue;
      waits = true;
      if (sent < kMost) CHECK(client.send("a"));
    }
    std::this_thread::sleep_for(100us);
  }
  for (const std::vector<SlowClient>* clients : {&slow, &dripping}) {
    for (const SlowClient& client : *clients) {
      const std::string said = client.said();
      CHECK(said.starts_with("HTTP/1.1 408 "));
      CHECK(said.ends_with("\r\n\r\n"));
    }
  }
  for (const SlowClient& client : silent) CHECK(client.said().empty());
}

}  // namespace lockstep::test
