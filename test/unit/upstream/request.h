// Somebody who wants a connection and then its response, and keeps what it is told.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ringside/base/arena.h"
#include "ringside/http/message.h"
#include "ringside/upstream/pools.h"
#include "ringside/upstream/session.h"

namespace ringside::upstream::test {

using News = std::vector<std::string>;

inline std::string word(base::Origin origin) {
  return origin == base::Origin::self ? "self" : "upstream";
}

inline std::string word(base::Retry retry) {
  if (retry == base::Retry::no) return "no";
  return retry == base::Retry::yes ? "yes" : "reused_only";
}

class Request final : public Waiter, public ResponseHandler {
 public:
  explicit Request(base::ChunkPool& chunks) : arena(chunks) {}

  void on_session(Session& given) override {
    session = &given;
    tell("session");
  }
  void on_no_session(const base::Error& failed, SharedServer* tried) override {
    error = failed;
    server = tried;
    tell("none: " + std::string(base::describe(failed.code)));
  }

  void on_response_head(http::ResponseHead& head) override {
    keep_alive = head.keep_alive;
    tell("head " + std::to_string(head.status));
  }
  void on_response_body(net::Piece piece) override {
    body += piece.take_lease().bytes();
    tell("body");
  }
  void on_response_end(const http::FieldList* trailers) override {
    std::string event = "end";
    if (trailers != nullptr) {
      for (const http::Field& field : *trailers)
        event += " " + std::string(field.name) + "=" + std::string(field.value);
    }
    tell(event);
  }
  void on_request_progress() override { ++progress; }
  void on_upstream_failed(const base::Error& failed) override {
    error = failed;
    session = nullptr;
    tell("failed: " + std::string(base::describe(failed.code)) + ", " + word(failed.origin) + ", " +
         word(failed.retry));
  }

  // Begins, and queues the head.
  void send(http::Method method = http::Method::get, const RequestFraming& framing = {}) {
    std::string_view text = method == http::Method::head   ? "HEAD"
                            : method == http::Method::post ? "POST"
                                                           : "GET";
    body.clear();
    session->begin(*this, arena, method);
    reused = session->reused();
    http::HeadWriter head = session->start_head({.method = text, .target = "/x", .host = "a.test"});
    EXPECT_TRUE(session->send_head(head, framing));
  }
  // The exchange is over; its memory goes with it.
  void finish() {
    std::exchange(session, nullptr)->finish();
    arena.release();
  }
  void abandon() {
    std::exchange(session, nullptr)->abandon();
    arena.release();
  }

  // What came since the last call, one "body" for pieces that followed one another.
  News news() { return std::exchange(events_, {}); }

  base::Arena arena;
  Session* session = nullptr;
  base::Error error;
  SharedServer* server = nullptr;
  std::string body;
  bool keep_alive = false;
  bool reused = false;  // of the session of the last send
  unsigned progress = 0;
  std::function<void(const std::string&)> action;

 private:
  void tell(const std::string& event) {
    if (event != "body" || events_.empty() || events_.back() != "body") events_.push_back(event);
    if (action) action(event);
  }
  News events_;
};

}  // namespace ringside::upstream::test
