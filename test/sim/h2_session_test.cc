// What a scripted client of HTTP/2 notices of a server that misbehaves.
#include "h2_session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "h2_peer.h"
#include "h2_script.h"

namespace ringside::sim {
namespace {

using test::h2_data;
using test::h2_frame;
using test::h2_headers;
using test::h2_reset;
using test::h2_settings;
using test::h2_window;

// Asks for one thing, and writes down what it hears.
class Asking final : public H2SessionListener {
 public:
  explicit Asking(const H2Session::Options& options = {}) : session(*this, options, Random(1)) {
    stream = session.request(
        {{":method", "GET"}, {":scheme", "http"}, {":authority", "a.test"}, {":path", "/"}}, false);
    speak();
    hear(h2_settings() + h2_frame(4, 1, 0, {}));
  }
  void hear(const std::string& bytes) {
    session.receive(bytes);
    speak();
  }
  void speak() {
    while (!session.next().empty()) {
    }
  }
  void on_stream_head(std::int32_t, const H2FieldList& fields) override {
    events.push_back("head " + fields.front().second);
  }
  void on_stream_body(std::int32_t, std::string_view bytes) override {
    events.push_back("body " + std::to_string(bytes.size()));
  }
  void on_stream_end(std::int32_t) override { events.push_back("end"); }
  void on_stream_closed(std::int32_t, std::uint32_t code) override {
    events.push_back("closed " + std::to_string(code));
  }
  void on_go_away(std::uint32_t code) override {
    events.push_back("go away " + std::to_string(code));
  }
  void on_request_leaves(std::int32_t) override {}
  void on_request_unsent(std::int32_t) override { events.push_back("unsent"); }
  void on_message_whole(std::int32_t) override {}
  Piece on_body_wanted(std::int32_t, std::span<char>) override { return {.last = true}; }
  H2FieldList trailers_of(std::int32_t) override { return {}; }
  void on_violation(const std::string& what) override { violations.push_back(what); }

  std::vector<std::string> events;
  std::vector<std::string> violations;
  std::int32_t stream = 0;
  H2Session session;
};

std::string head(bool end) {
  return h2_headers(1, {{":status", "200"}}, end);
}

bool noticed(const Asking& client, const std::string& what) {
  return std::ranges::any_of(client.violations, [&](const std::string& violation) {
    return violation.find(what) != std::string::npos;
  });
}

TEST(H2Session, a_good_server_is_no_violation) {
  Asking client({.stream_window_bytes = 10});
  client.hear(head(false) + h2_data(1, "0123456789", false) + h2_data(1, "", true));
  const std::vector<std::string> wanted = {"head 200", "body 10", "end", "closed 0"};
  EXPECT_EQ(client.events, wanted);
  EXPECT_TRUE(client.violations.empty()) << client.violations.front();
}

TEST(H2Session, a_stream_window_that_is_overrun) {
  Asking client({.stream_window_bytes = 10});
  client.hear(head(false) + h2_data(1, "0123456789a", false));
  EXPECT_TRUE(noticed(client, "FLOW_CONTROL_ERROR"));
}

TEST(H2Session, a_window_grows_only_by_what_was_used) {
  Asking client({.stream_window_bytes = 10});
  client.hear(head(false) + h2_data(1, "0123456789", false));
  client.session.consume(1, 6);
  client.speak();
  client.hear(h2_data(1, "012345", false));
  EXPECT_TRUE(client.violations.empty()) << client.violations.front();
  client.hear(h2_data(1, "0", false));
  EXPECT_TRUE(noticed(client, "FLOW_CONTROL_ERROR"));
}

TEST(H2Session, a_connection_window_that_is_overrun) {
  Asking client({.stream_window_bytes = 1U << 20});
  const std::string frame = h2_data(1, std::string(16'384, 'x'), false);
  client.hear(head(false) + frame + frame + frame);
  EXPECT_TRUE(client.violations.empty()) << client.violations.front();
  client.hear(frame);
  EXPECT_TRUE(noticed(client, "FLOW_CONTROL_ERROR"));
}

TEST(H2Session, a_frame_behind_the_end_of_a_stream) {
  for (const bool by_reset : {false, true}) {
    Asking client;
    client.hear(head(!by_reset) + (by_reset ? h2_reset(1, 8) : std::string()));
    EXPECT_TRUE(client.violations.empty()) << client.violations.front();
    client.hear(h2_data(1, "x", false));
    EXPECT_TRUE(noticed(client, "a frame of a stream that was ended"));
  }
}

TEST(H2Session, a_window_that_a_server_lets_grow_too_far) {
  Asking client;
  client.hear(h2_window(0, (1 << 24) - 65'535) + h2_window(1, (1 << 24) - 65'535));
  EXPECT_TRUE(client.violations.empty()) << client.violations.front();
  client.hear(h2_window(0, 1));
  EXPECT_TRUE(noticed(client, "a connection's window grew"));
  client.hear(h2_window(1, 1));
  EXPECT_TRUE(noticed(client, "a stream's window grew"));
}

// They are mistakes, all of them, wherever they come.
TEST(H2Session, no_server_takes_the_mistakes) {
  for (unsigned kind = 0; kind < h2_mistakes; ++kind) {
    test::H2Recorder server;
    ASSERT_TRUE(server.greet());
    server.take_frames();
    const bool alive = server.receive(h2_mistake(kind));
    const auto frames = server.take_frames();
    const bool said = std::ranges::any_of(
        frames, [](const test::H2Frame& f) { return f.type == 7 && f.number(4) != 0; });
    EXPECT_TRUE(!alive && said) << "mistake " << kind;
  }
}

}  // namespace
}  // namespace ringside::sim
