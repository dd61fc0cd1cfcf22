#include "tools/lockstep/explore/server.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <fmt/format.h>
#include <httplib.h>
#include <thread>
#include <utility>

#include "tools/console/options.hpp"

namespace lockstep {
namespace {

constexpr int kThreads = 8;
constexpr std::size_t kMostBody = 1;  // byte; no request has one

/// What keeps a page from being framed, sniffed, stored or told about.
httplib::Headers reply_headers() {
  return {{"Cache-Control", "no-store"},
          {"Content-Security-Policy",
           "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src "
           "data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
           "'none'"},
          {"Cross-Origin-Opener-Policy", "same-origin"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Referrer-Policy", "no-referrer"},
          {"X-Content-Type-Options", "nosniff"}};
}

DoorRequest door_request(const httplib::Request& from) {
  DoorRequest request{.method = from.method, .path = from.path};
  for (const auto& [name, value] : from.headers) {
    std::string small = name;
    std::ranges::transform(small, small.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    // What the library adds about the connection is not what was sent.
    if (small.starts_with("remote_") || small.starts_with("local_")) continue;
    request.headers.emplace_back(std::move(small), value);
  }
  for (const auto& [name, value] : from.params) request.query.emplace_back(name, value);
  return request;
}

void send(DoorReply reply, httplib::Response& to) {
  constexpr int kMethodNotAllowed = 405;
  to.status = reply.status;
  if (reply.status == kMethodNotAllowed) to.set_header("Allow", "GET");
  if (reply.type.empty()) return;
  if (!reply.saved_as.empty()) {
    to.set_header("Content-Disposition",
                  fmt::format("attachment; filename=\"{}\"", reply.saved_as));
  }
  // By a provider, which is sent as it is: to compress for this machine itself takes longer.
  const std::size_t size = reply.body.size();
  to.set_content_provider(size, reply.type,
                          [body = std::move(reply.body)](std::size_t offset, std::size_t length,
                                                         httplib::DataSink& sink) {
                            return sink.write(body.data() + offset, length);
                          });
}

void configure(httplib::Server& server) {
  using namespace std::chrono_literals;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  // Not the library's own, which lets two programs share a port.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server.set_tcp_nodelay(true);
  server.set_keep_alive_max_count(1);
  server.set_keep_alive_timeout(1);
  server.set_read_timeout(2s);
  server.set_write_timeout(5s);
  server.set_payload_max_length(kMostBody);
  server.set_default_headers(reply_headers());
  // Any other return than 100 or 417 is the whole reply; those two are followed by another.
  server.set_expect_100_continue_handler([](const httplib::Request&, httplib::Response& reply) {
    constexpr int kExpectationFailed = 417;
    reply.status = kExpectationFailed;
    return 0;
  });
  server.set_exception_handler([](const httplib::Request&, httplib::Response& reply,
                                  const std::exception_ptr&) { reply.status = 500; });
}

}  // namespace

struct ExploreServer::Sockets {
  httplib::Server server{};
};

ExploreServer::ExploreServer(int port) : sockets_(std::make_unique<Sockets>()) {
  httplib::Server& server = sockets_->server;
  configure(server);
  const std::string here = "127.0.0.1";
  port_ = port == 0 ? server.bind_to_any_port(here) : server.bind_to_port(here, port) ? port : -1;
  if (port_ <= 0) {
    throw UsageError(fmt::format(
        "--port: found {}, which is taken; allowed: a free port, or none for any", port));
  }
}

ExploreServer::~ExploreServer() = default;

void ExploreServer::run(const Door& door, const std::function<bool()>& stopped) {
  httplib::Server& server = sockets_->server;
  // Before the library looks for files or reads a body: neither is ever wanted.
  server.set_pre_routing_handler([&door](const httplib::Request& request, httplib::Response& to) {
    send(door.reply(door_request(request)), to);
    return httplib::Server::HandlerResponse::Handled;
  });
  std::atomic<bool> done = false;
  std::thread watch([&] {
    using namespace std::chrono_literals;
    while (!done && !stopped()) std::this_thread::sleep_for(100ms);
    // It stops only what listens already.
    for (; !done; std::this_thread::sleep_for(10ms)) server.stop();
  });
  server.listen_after_bind();
  done = true;
  watch.join();
}

}  // namespace lockstep
