#include "tools/explore/server.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <exception>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "tools/console/options.hpp"
#include "tools/explore/address.hpp"

namespace lockstep {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::beast::error_code;
using namespace std::chrono_literals;

constexpr std::size_t kThreads = 8;
constexpr std::uint32_t kMostHead = 8192;  // bytes
constexpr auto kPause = 50ms;              // before what could not be had is asked for again

std::string text_of(boost::beast::string_view view) { return {view.data(), view.size()}; }

using Request = http::request<http::empty_body>;
using Reply = http::response<http::string_body>;

DoorRequest door_request(const Request& from) {
  const std::string address = text_of(from.target());
  DoorRequest request{.method = text_of(from.method_string()), .path = decoded_path(address)};
  for (const auto& field : from) {
    std::string small = text_of(field.name_string());
    std::ranges::transform(small, small.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    request.headers.emplace_back(std::move(small), text_of(field.value()));
  }
  if (const std::size_t mark = address.find('?'); mark != std::string::npos) {
    request.query = decoded_query(std::string_view(address).substr(mark + 1));
  }
  return request;
}

/// What keeps a page from being framed, sniffed, stored or told about, around what the door says.
Reply reply_of(DoorReply from) {
  Reply reply{static_cast<http::status>(from.status), 11};
  reply.set(http::field::cache_control, "no-store");
  reply.set("Content-Security-Policy",
            "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src "
            "data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
            "'none'");
  reply.set("Cross-Origin-Opener-Policy", "same-origin");
  reply.set("Cross-Origin-Resource-Policy", "same-origin");
  reply.set("Referrer-Policy", "no-referrer");
  reply.set("X-Content-Type-Options", "nosniff");
  if (reply.result() == http::status::method_not_allowed) reply.set(http::field::allow, "GET");
  if (!from.type.empty()) reply.set(http::field::content_type, from.type);
  if (!from.saved_as.empty()) {
    reply.set(http::field::content_disposition,
              fmt::format("attachment; filename=\"{}\"", from.saved_as));
  }
  reply.body() = std::move(from.body);
  reply.keep_alive(false);
  reply.prepare_payload();
  return reply;
}

/// An exception that left a thread of the pool would end the program: here it ends a connection,
/// which nobody holds any more, and whoever asked may ask again.
template <class Do>
void on_connection(const Do& act) {
  try {
    act();
  } catch (const std::exception&) {
    return;
  }
}

/// One connection: a request, of which the head alone is read, and its reply.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(tcp::socket socket, const Door& door, const ServerPatience& patience)
      : stream_(std::move(socket)),
        clock_(stream_.get_executor()),
        door_(door),
        patience_(patience) {
    head_.header_limit(kMostHead);
    // The door turns away whoever announces a body: none is ever read.
    head_.body_limit(std::numeric_limits<std::uint64_t>::max());
  }

  void start() {
    wait_for_head(false);
    read_head();
  }

 private:
  /// Part by part, not by Beast, which waits for a whole line: bytes that have come as the time is
  /// over are not cancelled, and the next would be waited for as long as they drip.
  void read_head() {
    constexpr std::size_t kPart = 4096;
    stream_.async_read_some(received_.prepare(kPart),
                            [self = shared_from_this()](error_code error, std::size_t size) {
                              on_connection([&] {
                                self->received_.commit(size);
                                self->parse(error);
                                const bool done = self->head_.is_header_done();
                                if (!error && !done && self->is_late_)
                                  error = asio::error::operation_aborted;
                                if (error || done) return self->answer(error);
                                self->read_head();
                              });
                            });
  }

  /// `error`: of reading, then of what was read.
  void parse(error_code& error) {
    if (error == asio::error::eof) {
      error = {};
      if (head_.got_some()) head_.put_eof(error);
      if (!error) error = http::error::end_of_stream;
    }
    while (!error && !head_.is_header_done() && received_.size() > 0) {
      received_.consume(head_.put(received_.data(), error));
    }
    if (error == http::error::need_more) error = {};
  }

  /// The stream's own clock would close it: whoever is slow could not be told. On a busy machine
  /// the time may be over before what has come was looked at: then once more.
  void wait_for_head(bool again) {
    clock_.expires_after(patience_.head);
    clock_.async_wait([self = shared_from_this(), again](error_code error) {
      if (error || self->has_head_) return;
      on_connection([&] {
        error_code ignored;
        const bool has_come = self->stream_.socket().available(ignored) > 0;
        if (has_come && !again && !self->head_.got_some()) return self->wait_for_head(true);
        self->is_late_ = true;
        self->stream_.cancel();
      });
    });
  }

  void answer(error_code error) {
    has_head_ = true;
    clock_.cancel();
    // A browser may open a connection ahead of what it will ask.
    const bool slow = error == asio::error::operation_aborted && head_.got_some();
    const bool no_request = error.category() == make_error_code(http::error::bad_method).category();
    if (error && !slow && !no_request) return;
    if (error == http::error::end_of_stream) return;
    const int refusal = slow ? 408 : error == http::error::header_limit ? 431 : 400;
    DoorReply reply{.status = refusal};
    try {
      if (!error) reply = door_.reply(door_request(head_.get()));
      reply_ = reply_of(std::move(reply));
    } catch (const std::exception&) {
      reply_ = reply_of({.status = 500});
    }
    stream_.expires_after(patience_.reply);
    http::async_write(stream_, reply_, [self = shared_from_this()](error_code failed, std::size_t) {
      on_connection([&] { self->end(failed); });
    });
  }

  /// Whoever still writes when a connection is closed may never read the reply.
  void end(error_code error) {
    if (!error) error = stream_.socket().shutdown(tcp::socket::shutdown_send, error);
    stream_.expires_after(patience_.after);
    if (!error) discard();
  }
  void discard() {
    stream_.async_read_some(asio::buffer(discarded_),
                            [self = shared_from_this()](error_code error, std::size_t) {
                              if (!error) on_connection([&] { self->discard(); });
                            });
  }

  boost::beast::tcp_stream stream_;
  asio::steady_timer clock_;  ///< until the head is there
  bool has_head_ = false;     ///< or will not come any more
  bool is_late_ = false;      ///< the time for the head is over
  const Door& door_;
  const ServerPatience patience_;
  boost::beast::flat_buffer received_;
  http::request_parser<http::empty_body> head_;
  Reply reply_;
  std::array<char, 4096> discarded_{};
};

}  // namespace

struct ExploreServer::Sockets {
  asio::thread_pool threads{kThreads};
  tcp::acceptor acceptor{threads};
  ServerPatience patience;
  std::atomic<bool> ends = false;

  /// Takes one connection after the other. Memory or a descriptor that is lacking for one may be
  /// there a moment later.
  void take_next(const Door& door) {
    while (!ends) {
      try {
        acceptor.async_accept(asio::make_strand(threads),
                              [this, &door](error_code error, tcp::socket socket) {
                                if (error == asio::error::operation_aborted) return;
                                if (error) std::this_thread::sleep_for(kPause);
                                if (!error) begin(std::move(socket), door);
                                take_next(door);
                              });
        return;
      } catch (const std::exception&) {
        std::this_thread::sleep_for(kPause);
      }
    }
  }

 private:
  void begin(tcp::socket socket, const Door& door) {
    on_connection([&] {
      error_code ignored;
      ignored = socket.set_option(tcp::no_delay(true), ignored);
      std::make_shared<Exchange>(std::move(socket), door, patience)->start();
    });
  }
};

ExploreServer::ExploreServer(int port, ServerPatience patience)
    : sockets_(std::make_unique<Sockets>()) {
  sockets_->patience = patience;
  tcp::acceptor& acceptor = sockets_->acceptor;
  error_code error;
  error = acceptor.open(tcp::v4(), error);
  if (!error) error = acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  const tcp::endpoint here(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port));
  if (!error) error = acceptor.bind(here, error);
  if (!error) error = acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error) {
    const bool taken = error == asio::error::address_in_use;
    throw UsageError(fmt::format(
        "--port: found {} ({}); allowed: a free port that one may open, or none for any", port,
        taken ? "taken" : error.message()));
  }
  port_ = acceptor.local_endpoint().port();
}

ExploreServer::~ExploreServer() = default;

void ExploreServer::run(const Door& door, const std::function<bool()>& stopped) {
  sockets_->take_next(door);
  while (!stopped()) std::this_thread::sleep_for(100ms);
  sockets_->ends = true;
  sockets_->threads.stop();
  sockets_->threads.join();
}

}  // namespace lockstep
