// HTTP/2 servers that do whatever a server may, at any time, to requests that are given up at any
// time: who is told what, and nothing is left behind (the fixture looks).
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../../sim/random.h"
#include "../http/h2_peer.h"
#include "pools_fixture.h"

namespace ringside::upstream::test {
namespace {

using namespace ringside::test;
using sim::Random;

constexpr std::uint8_t type_headers = 1;
constexpr std::uint8_t type_ping = 6;
constexpr std::uint8_t type_goaway = 7;
constexpr unsigned steps = 400;
constexpr std::size_t requests_at_a_time = 6;
// Of a buffer of the machine.
constexpr std::size_t piece_bytes_max = 500;

config::Snapshot h2_snapshot(Random random) {
  config::Snapshot out = snapshot(1, random.coin() ? 0 : 2);
  config::Upstream& upstream = out.upstreams[0];
  upstream.protocol = upstream.servers[0].protocol = config::UpstreamProtocol::h2;
  upstream.servers[0].streams_max = random.coin() ? 100 : 2;
  return out;
}

// A body tells its length.
std::string body_of(std::size_t bytes) {
  return std::string(bytes, static_cast<char>('a' + bytes % 26));
}

struct Course {
  explicit Course(base::ChunkPool& chunks) : request(chunks) {}
  Request request;
  std::size_t body_left = 0;
  bool bodied = false;
  bool end_sent = false;
  bool head = false;
  bool ended = false;
  bool over = false;  // it is not owed anything any more
};

struct Server {
  std::string heard;  // not a whole frame yet
  std::string to_say;
  std::vector<std::uint32_t> streams;  // not answered yet
  bool greeted = false;
  bool preface = false;
};

class H2CoursesTest : public PoolsTest, public testing::WithParamInterface<unsigned> {
 protected:
  H2CoursesTest()
      : PoolsTest(h2_snapshot(Random(GetParam())), {.window_bytes = 65'535}),
        random_(GetParam() + 7919) {}
  ~H2CoursesTest() override {
    for (auto& course : courses_) {
      course->request.action = nullptr;
      if (course->request.waiting() || course->request.queued()) pools_.abandon(course->request);
      if (course->request.session != nullptr) course->request.abandon();
      course->request.arena.release();
    }
    for (const int fd : descriptors()) {
      if (machine_.waits(IORING_OP_CONNECT, fd))
        machine_.finish(IORING_OP_CONNECT, fd, -ECONNREFUSED);
    }
    // A server that has not greeted loses its connection by time alone.
    for (int i = 0; i < 3; ++i) {
      pools_.close_idle();
      machine_.pass_ms(20'000);
      for (const int fd : descriptors())
        machine_.leave_all(fd);
      machine_.tidy();
    }
  }

  std::vector<int> descriptors() const { return {sys_.open.begin(), sys_.open.end()}; }

  void step() {
    const std::vector<int> fds = descriptors();
    switch (random_.below(8)) {
      case 0:
        begin();
        break;
      case 1:
      case 2:
        if (!courses_.empty()) act(*courses_[random_.below(courses_.size())]);
        break;
      case 3:
        machine_.pass_ms(random_.one_in(20) ? 20'000 : random_.below(30));
        break;
      default:
        if (!fds.empty()) serve(fds[random_.below(fds.size())]);
        break;
    }
    machine_.settle();
    machine_.tidy();
    std::erase_if(courses_, [](const auto& course) {
      return course->over && !course->request.waiting() && course->request.session == nullptr;
    });
  }

 private:
  void begin() {
    if (courses_.size() >= requests_at_a_time) return;
    courses_.push_back(std::make_unique<Course>(chunks_));
    Course& course = *courses_.back();
    course.bodied = random_.coin();
    course.body_left = random_.below(1'000);
    course.request.action = [this, &course](const std::string& event) { told(course, event); };
    acquire(course.request);
  }

  void told(Course& course, const std::string& event) {
    Request& request = course.request;
    EXPECT_FALSE(course.over) << event << " for who is gone";
    EXPECT_FALSE(course.ended) << event << " behind the end";
    if (event == "session") {
      RequestFraming framing;
      framing.body.kind = http::Framing::Kind::chunked;
      return request.send(http::Method::post, course.bodied ? framing : RequestFraming{});
    }
    if (event.starts_with("none") || event.starts_with("failed")) {
      course.over = true;
      return request.arena.release();
    }
    if (event == "head 200") {
      EXPECT_FALSE(std::exchange(course.head, true)) << "one head";
    } else if (!event.starts_with("head")) {
      EXPECT_TRUE(course.head) << event << " before the head";
    }
    if (event.starts_with("end")) {
      course.ended = true;
      EXPECT_EQ(request.body, body_of(request.body.size())) << "a part, or of another";
    }
    if (random_.one_in(20)) return give_up(course);
    if (random_.one_in(10)) request.session->park();
  }
  void give_up(Course& course) {
    course.over = true;
    course.request.abandon();
  }

  // Whoever sent the request.
  void act(Course& course) {
    Request& request = course.request;
    if (request.session == nullptr) {
      if (!course.over && random_.one_in(10)) {
        course.over = true;
        pools_.abandon(request);
      }
      return;
    }
    if (course.ended && (!course.bodied || course.end_sent) &&
        request.session->request_pending() == 0) {
      course.over = true;
      return request.finish();
    }
    if (random_.one_in(15)) return give_up(course);
    if (random_.coin()) return request.session->resume();
    if (!course.bodied || course.end_sent) return;
    const std::size_t bytes = std::min<std::size_t>(course.body_left, random_.between(1, 300));
    course.body_left -= bytes;
    if (bytes != 0) {
      EXPECT_TRUE(request.session->send_body(machine_.lease(std::string(bytes, 'r'))));
      return;
    }
    course.end_sent = true;
    EXPECT_TRUE(request.session->send_end(nullptr));
  }

  // ---- the servers

  void serve(int fd) {
    if (machine_.waits(IORING_OP_CONNECT, fd))
      return machine_.finish(IORING_OP_CONNECT, fd, random_.one_in(12) ? -ECONNREFUSED : 0);
    Server& server = servers_[fd];
    if (machine_.sending(fd) && !random_.one_in(4)) {
      server.heard += machine_.leave(fd, random_.one_in(3) ? random_.between(1, 60) : 100'000);
      listen(server);
    }
    if (!machine_.receiving(fd)) return;
    if (random_.one_in(60)) return machine_.end_receive(fd, random_.coin() ? 0 : -ECONNRESET);
    say(server);
    const std::string part = server.to_say.substr(0, random_.between(1, piece_bytes_max));
    server.to_say.erase(0, part.size());
    if (!part.empty()) machine_.arrive(fd, part);
  }
  void listen(Server& server) {
    if (!server.preface) {
      if (server.heard.size() < h2_preface.size()) return;
      server.heard.erase(0, h2_preface.size());
      server.preface = true;
    }
    std::size_t used = 0;
    for (const H2Frame& frame : h2_split(server.heard)) {
      used += 9 + frame.payload.size();
      if (frame.type == type_headers) server.streams.push_back(frame.stream);
    }
    server.heard.erase(0, used);
  }
  void say(Server& server) {
    if (!std::exchange(server.greeted, true)) {
      const std::uint32_t streams = random_.coin() ? 1 : 50;
      server.to_say = h2_settings(h2_number(3, 2) + h2_number(streams, 4) + h2_number(4, 2) +
                                  h2_number(random_.coin() ? 10 : 65'535, 4));
    }
    if (random_.one_in(10)) server.to_say += h2_frame(type_ping, 0, 0, "12345678");
    if (random_.one_in(4)) server.to_say += h2_window(0, 100);
    if (server.streams.empty() || !server.to_say.empty()) return;
    const std::size_t at = random_.below(server.streams.size());
    const std::uint32_t stream = server.streams[at];
    if (random_.coin()) server.to_say += h2_window(stream, 500);
    if (random_.one_in(20)) {
      server.to_say += h2_frame(type_goaway, 0, 0, h2_number(stream, 4) + h2_number(0, 4));
      return std::erase_if(server.streams, [&](auto one) { return one > stream; }), void();
    }
    if (random_.coin()) return;
    server.streams.erase(server.streams.begin() + static_cast<std::ptrdiff_t>(at));
    server.to_say += random_.one_in(6) ? h2_reset(stream, random_.coin() ? 7 : 8) : answer(stream);
  }
  std::string answer(std::uint32_t stream) {
    std::string out;
    if (random_.one_in(4)) out += h2_headers(stream, {{":status", "103"}}, false);
    const std::string body = body_of(random_.below(3'000));
    H2FieldList head = {{":status", "200"}};
    if (random_.coin()) head.emplace_back("content-length", std::to_string(body.size()));
    const bool trailers = random_.one_in(4);
    if (body.empty() && !trailers) return out + h2_headers(stream, head, true);
    out += h2_headers(stream, head, false);
    const std::size_t half = random_.below(body.size() + 1);
    out += h2_data(stream, body.substr(0, half), false);
    if (random_.one_in(15)) return out + h2_reset(stream, 2);
    out += h2_data(stream, body.substr(half), !trailers);
    if (trailers) out += h2_headers(stream, {{"sum", "7"}}, true);
    // It needs no more of the request (RFC 9113 §8.1).
    if (random_.one_in(4)) out += h2_reset(stream, 0);
    return out;
  }

  Random random_;
  std::vector<std::unique_ptr<Course>> courses_;
  std::map<int, Server> servers_;
};

TEST_P(H2CoursesTest, leave_nothing_behind) {
  for (unsigned i = 0; i < steps && !HasFailure(); ++i)
    step();
}

INSTANTIATE_TEST_SUITE_P(Seeds, H2CoursesTest, testing::Range(0U, 200U));

}  // namespace
}  // namespace ringside::upstream::test
