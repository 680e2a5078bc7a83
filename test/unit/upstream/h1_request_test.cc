// What an HTTP/1.1 session sends: heads, bodies, tunnels; early answers and failures on the way.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "session_fixture.h"

namespace ringside::upstream::test {
namespace {

constexpr std::string_view answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST_F(SessionTest, a_head_without_a_body) {
  EXPECT_EQ(send(), "GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n");
  EXPECT_TRUE(session().send_end(nullptr));
  EXPECT_EQ(machine_.leave_all(fd_), "") << "there is no end to send";
}

TEST_F(SessionTest, what_goes_with_a_head) {
  RequestFraming framing = length(7);
  framing.expect_continue = true;
  framing.te_trailers = true;
  EXPECT_EQ(send(http::Method::post, framing),
            "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 7\r\nExpect: 100-continue\r\n"
            "Connection: TE\r\nTE: trailers\r\n\r\n");
}

TEST_F(SessionTest, an_upgrade_is_asked_for) {
  EXPECT_EQ(send(http::Method::get, {.upgrade = true, .upgrade_value = "websocket"}),
            "GET /x HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
}

TEST_F(SessionTest, an_upgrade_with_trailers_names_both) {
  RequestFraming framing{.upgrade = true, .upgrade_value = "x", .te_trailers = true};
  EXPECT_EQ(send(http::Method::get, framing),
            "GET /x HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade, TE\r\nUpgrade: x\r\n"
            "TE: trailers\r\n\r\n");
}

TEST_F(SessionTest, a_body_of_known_length_leaves_with_its_head) {
  request_.send(http::Method::post, length(5));
  EXPECT_TRUE(session().send_body(machine_.lease("he")));
  EXPECT_TRUE(session().send_body(machine_.lease("llo")));
  EXPECT_TRUE(session().send_end(nullptr));
  machine_.settle();
  EXPECT_EQ(machine_.leave(fd_),
            "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_EQ(session().request_pending(), 0U);
  EXPECT_EQ(machine_.buffers->leased(), 0U);
}

TEST_F(SessionTest, a_chunked_body) {
  EXPECT_EQ(send(http::Method::post, chunked()),
            "POST /x HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_TRUE(session().send_body(machine_.lease("hello, ")));
  EXPECT_TRUE(session().send_body(machine_.lease("0123456789abcdef")));
  EXPECT_TRUE(session().send_end(nullptr));
  EXPECT_EQ(machine_.leave_all(fd_), "7\r\nhello, \r\n10\r\n0123456789abcdef\r\n0\r\n\r\n");
}

TEST_F(SessionTest, an_empty_chunked_body) {
  send(http::Method::post, chunked());
  EXPECT_TRUE(session().send_end(nullptr));
  EXPECT_EQ(machine_.leave_all(fd_), "0\r\n\r\n");
}

TEST_F(SessionTest, trailers_follow_a_chunked_body_but_none_that_concern_this_connection) {
  http::FieldList trailers;
  trailers.add(request_.arena, {.name = "Sum", .value = "1f"});
  trailers.add(request_.arena, {.name = "Hop", .value = "no", .hop_by_hop = true});
  send(http::Method::post, chunked());
  EXPECT_TRUE(session().send_end(&trailers));
  EXPECT_EQ(machine_.leave_all(fd_), "0\r\nSum: 1f\r\n\r\n");
  arrive(answer);
  EXPECT_EQ(news(), (News{"head 200", "body", "end"}));
  ASSERT_TRUE(kept());
  // And after a chunk; the first chunk of this request is the first again.
  take();
  http::FieldList more;
  more.add(request_.arena, {.name = "Sum", .value = "2f"});
  send(http::Method::post, chunked());
  EXPECT_TRUE(session().send_body(machine_.lease("x")));
  EXPECT_TRUE(session().send_end(&more));
  EXPECT_EQ(machine_.leave_all(fd_), "1\r\nx\r\n0\r\nSum: 2f\r\n\r\n");
}

TEST_F(SessionTest, progress_is_told_and_what_is_pending_is_known) {
  send(http::Method::post, length(10));
  unsigned before = request_.progress;
  EXPECT_TRUE(session().send_body(machine_.lease("0123456789")));
  EXPECT_EQ(session().request_pending(), 10 + sizeof(net::Slice));
  machine_.settle();
  machine_.leave(fd_, 4);
  EXPECT_EQ(session().request_pending(), 6 + sizeof(net::Slice));
  EXPECT_EQ(request_.progress, before + 1);
  machine_.leave(fd_);
  EXPECT_EQ(session().request_pending(), 0U);
  EXPECT_EQ(request_.progress, before + 2);
}

// ---- early answers

TEST_F(SessionTest, an_answer_may_come_while_the_request_is_still_sent) {
  send(http::Method::post, length(10));
  EXPECT_TRUE(session().send_body(machine_.lease("01234")));
  machine_.settle();
  arrive(answer);
  EXPECT_EQ(news(), (News{"head 200", "body", "end"}));
  EXPECT_EQ(session().request_pending(), 5 + sizeof(net::Slice));
  EXPECT_FALSE(session().request_refused());
  EXPECT_EQ(machine_.leave(fd_), "01234");
  EXPECT_TRUE(session().send_body(machine_.lease("56789")));
  EXPECT_EQ(machine_.leave_all(fd_), "56789");
  EXPECT_TRUE(kept()) << "both are complete";
}

TEST_F(SessionTest, finished_with_a_request_that_is_not_sent_it_is_not_kept) {
  send(http::Method::post, length(10));
  EXPECT_TRUE(session().send_body(machine_.lease("0123456789")));
  machine_.settle();
  arrive(answer);
  EXPECT_FALSE(kept());
}

TEST_F(SessionTest, a_server_that_answers_and_takes_no_more_is_heard) {
  for (int error : {EPIPE, ECONNRESET}) {
    SCOPED_TRACE(error);
    if (request_.session == nullptr) take();
    send(http::Method::post, length(10));
    EXPECT_TRUE(session().send_body(machine_.lease("01234")));
    unsigned before = request_.progress;
    send_fails(error);
    EXPECT_TRUE(session().request_refused());
    EXPECT_GT(request_.progress, before) << "whoever waits for room must hear of it";
    EXPECT_TRUE(session().send_body(machine_.lease("56789"))) << "dropped, not an error";
    EXPECT_TRUE(session().send_end(nullptr));
    machine_.settle();
    EXPECT_FALSE(machine_.sending(fd_));
    EXPECT_EQ(machine_.buffers->leased(), 0U);
    EXPECT_EQ(news(), News{});
    arrive("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno");
    EXPECT_EQ(news(), (News{"head 413", "body", "end"}));
    EXPECT_FALSE(kept());
  }
}

TEST_F(SessionTest, refused_and_not_answered_it_fails) {
  send(http::Method::post, length(10));
  EXPECT_TRUE(session().send_body(machine_.lease("01234")));
  send_fails(ECONNRESET);
  EXPECT_EQ(news(), News{});
  server_ends();
  EXPECT_EQ(news(), (News{"failed: closed, upstream, no"}));
}

TEST_F(SessionTest, refused_after_the_server_ended_it_fails_at_once) {
  send(http::Method::post, length(10));
  EXPECT_TRUE(session().send_body(machine_.lease("01234")));
  machine_.settle();
  arrive(answer);
  server_ends();
  EXPECT_EQ(news(), (News{"head 200", "body", "end"}));
  send_fails(EPIPE);
  EXPECT_EQ(news(), News{}) << "the answer is whole";
  EXPECT_TRUE(session().request_refused());
  EXPECT_FALSE(kept());
}

// ---- tunnels

class TunnelTest : public SessionTest {
 protected:
  TunnelTest() {
    request_.action = [this](const std::string& event) {
      if (event == "head 101") session().enter_tunnel();
    };
    send(http::Method::get, {.upgrade = true, .upgrade_value = "echo"});
  }
  static constexpr std::string_view switched =
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
};

TEST_F(TunnelTest, bytes_pass_as_they_are_in_both_directions) {
  arrive(std::string(switched) + "first");
  EXPECT_EQ(news(), (News{"head 101", "body"}));
  arrive("HTTP/1.1 200 OK\r\n\r\n");
  EXPECT_EQ(request_.body, "firstHTTP/1.1 200 OK\r\n\r\n");
  EXPECT_TRUE(session().send_body(machine_.lease("ping")));
  EXPECT_TRUE(session().send_body(machine_.lease("pong")));
  EXPECT_EQ(machine_.leave_all(fd_), "pingpong");
}

TEST_F(TunnelTest, each_direction_ends_by_itself) {
  arrive(switched);
  EXPECT_TRUE(session().send_body(machine_.lease("last")));
  EXPECT_TRUE(session().send_end(nullptr));
  EXPECT_EQ(machine_.leave_all(fd_), "last");
  EXPECT_EQ(sys_.ends[fd_], 1);
  arrive("still");
  server_ends();
  EXPECT_EQ(news(), (News{"head 101", "body", "end"}));
  EXPECT_FALSE(kept()) << "it is no HTTP connection any more";
}

TEST_F(TunnelTest, the_servers_end_does_not_stop_the_other_direction) {
  arrive(switched);
  server_ends();
  EXPECT_EQ(news(), (News{"head 101", "end"}));
  EXPECT_TRUE(session().send_body(machine_.lease("on")));
  EXPECT_EQ(machine_.leave_all(fd_), "on");
  EXPECT_FALSE(kept());
}

TEST_F(TunnelTest, a_failure_of_either_direction_ends_it) {
  arrive(switched);
  EXPECT_TRUE(session().send_body(machine_.lease("ping")));
  send_fails(EPIPE);
  EXPECT_EQ(news(), (News{"head 101", "failed: reset, upstream, no"}));
}

TEST_F(TunnelTest, split_at_every_byte) {
  std::string all = std::string(switched) + "data";
  for (std::size_t cut = 1; cut < all.size(); ++cut) {
    SCOPED_TRACE(cut);
    if (request_.session == nullptr) {
      take();
      send(http::Method::get, {.upgrade = true, .upgrade_value = "echo"});
    }
    arrive(all.substr(0, cut));
    arrive(all.substr(cut));
    EXPECT_EQ(news(), (News{"head 101", "body"}));
    EXPECT_EQ(request_.body, "data");
    request_.abandon();
    machine_.tidy();
  }
}

// ---- ends that leave memory behind

TEST_F(SessionTest, abandoned_in_the_middle_of_a_send_what_it_points_to_stays) {
  request_.send(http::Method::post, length(4));
  EXPECT_TRUE(session().send_body(machine_.lease("body")));
  machine_.settle();
  Machine::Operation in_flight = machine_.look_send(fd_);
  request_.abandon();  // releases the arena too
  EXPECT_EQ(machine_.text(in_flight),
            "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nbody");
  EXPECT_NE(chunks_.in_use(), 0U);
  machine_.tidy();
  EXPECT_EQ(chunks_.in_use(), 0U);
  EXPECT_EQ(machine_.buffers->leased(), 0U);
}

TEST_F(SessionTest, failed_in_the_middle_of_a_send_what_it_points_to_stays) {
  request_.send();
  machine_.settle();
  Machine::Operation in_flight = machine_.look_send(fd_);
  server_ends();
  EXPECT_EQ(news(), (News{"failed: closed, upstream, no"}));
  request_.arena.release();
  EXPECT_EQ(machine_.text(in_flight), "GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n");
  machine_.tidy();
  EXPECT_EQ(chunks_.in_use(), 0U);
}

TEST_F(SessionTest, abandoned_before_the_turn_ends_nothing_is_sent) {
  request_.send();
  request_.abandon();
  machine_.settle();
  EXPECT_FALSE(machine_.sending(fd_));
}

}  // namespace
}  // namespace ringside::upstream::test
