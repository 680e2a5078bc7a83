// One connection to a server, and the request that has it.
#pragma once

#include <string>
#include <string_view>

#include "pools_fixture.h"

namespace ringside::upstream::test {

class SessionTest : public PoolsTest {
 protected:
  SessionTest() { take(); }
  ~SessionTest() override {
    request_.action = nullptr;
    if (request_.session != nullptr) request_.abandon();
    request_.arena.release();
  }

  // The idle connection, or a new one.
  void take() {
    acquire(request_);
    if (request_.session == nullptr) {
      fd_ = newest();
      machine_.finish(IORING_OP_CONNECT, fd_, 0);
    }
    ASSERT_EQ(request_.news(), (News{"session"}));
  }
  std::string send(http::Method method = http::Method::get, const RequestFraming& framing = {}) {
    return PoolsTest::send(request_, fd_, method, framing);
  }
  void arrive(std::string_view bytes) { machine_.arrive(fd_, bytes); }
  void server_ends() { machine_.end_receive(fd_, 0); }
  void send_fails(int error) {
    machine_.settle();
    machine_.finish(machine_.look_send(fd_), -error);
  }
  // Whether the connection is kept once the exchange is over.
  bool kept() {
    request_.finish();
    machine_.tidy();
    EXPECT_EQ(sys_.open.contains(fd_), server().idle(0) == 1U);
    return sys_.open.contains(fd_);
  }
  News news() { return request_.news(); }
  Session& session() { return *request_.session; }

  static RequestFraming length(std::uint64_t bytes) {
    RequestFraming framing;
    framing.body = {.kind = http::Framing::Kind::length, .length = bytes};
    return framing;
  }
  static RequestFraming chunked() {
    RequestFraming framing;
    framing.body.kind = http::Framing::Kind::chunked;
    return framing;
  }

  Request request_{chunks_};
  int fd_ = -1;
};

}  // namespace ringside::upstream::test
