/// Who may ask the server of `lockstep explore`, and what it answers: without a socket, so that
/// every kind of request can be tried.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/explore/explorer.hpp"

namespace lockstep {

/// A request, as far as the door looks at it.
struct DoorRequest {
  std::string method;  ///< "GET"
  std::string path;    ///< decoded: "/TOKEN/answer"
  /// Names in small letters, each as often as it was sent.
  std::vector<std::pair<std::string, std::string>> headers{};
  std::vector<std::pair<std::string, std::string>> query{};  ///< decoded
};

struct DoorReply {
  int status = 404;
  std::string type{};  ///< "application/json"; empty: no body
  std::string body{};
  std::string saved_as{};  ///< name for a download; empty: shown
};

class Door {
 public:
  /// `token` is the first part of every path; `port` that of the address that it answers at.
  Door(const Explorer& explorer, std::string page, std::string token, int port);

  /// 4xx without a body for whatever is not a plain GET of this page to this address; 4xx with the
  /// one-line error as JSON for a state that cannot be; else what was asked.
  [[nodiscard]] DoorReply reply(const DoorRequest& request) const;

 private:
  /// The status that turns a request away; 0: none does.
  [[nodiscard]] int refusal(const DoorRequest& request) const;
  [[nodiscard]] DoorReply answered(std::string_view what, const DoorRequest& request) const;

  const Explorer* explorer_;
  std::string page_, token_;
  std::string host_, local_host_;  ///< "127.0.0.1:8080", "localhost:8080"
};

/// 32 random hexadecimal digits.
std::string random_token();

}  // namespace lockstep
