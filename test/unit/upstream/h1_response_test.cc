// What an HTTP/1.1 session makes of what a server sends: framing, ends, retries, what it breaks.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "session_fixture.h"

namespace ringside::upstream::test {
namespace {

// ---- framing, split at every byte

struct Case {
  http::Method method;
  std::string response;
  News told;
  std::string body;
  bool kept;
  bool ended = false;  // by the server's FIN
};

class FramingTest : public SessionTest {
 protected:
  void check(const Case& c) {
    for (std::size_t cut = 1; cut <= c.response.size(); ++cut) {
      SCOPED_TRACE(c.response + "\nat " + std::to_string(cut));
      if (request_.session == nullptr) take();
      send(c.method);
      arrive(c.response.substr(0, cut));
      if (cut < c.response.size()) arrive(c.response.substr(cut));
      if (c.ended) server_ends();
      ASSERT_EQ(news(), c.told);
      ASSERT_EQ(request_.body, c.body);
      ASSERT_EQ(kept(), c.kept);
    }
  }
};

TEST_F(FramingTest, by_length) {
  check({http::Method::get,
         "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
         {"head 200", "body", "end"},
         "hello",
         true});
  check({http::Method::post,
         "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
         {"head 200", "end"},
         "",
         true});
}

TEST_F(FramingTest, chunked) {
  check({http::Method::get,
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
         {"head 200", "body", "end"},
         "hello",
         true});
  check({http::Method::get,
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: 1\r\nB: 2\r\n\r\n",
         {"head 200", "end A=1 B=2"},
         "",
         true});
}

TEST_F(FramingTest, until_the_end_of_the_connection) {
  check({http::Method::get,
         "HTTP/1.1 200 OK\r\n\r\nhello",
         {"head 200", "body", "end"},
         "hello",
         false,
         true});
}

TEST_F(FramingTest, without_a_body) {
  check({http::Method::head,
         "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
         {"head 200", "end"},
         "",
         true});
  check({http::Method::head,
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
         {"head 200", "end"},
         "",
         true});
  check({http::Method::get, "HTTP/1.1 204 No Content\r\n\r\n", {"head 204", "end"}, "", true});
  check({http::Method::get,
         "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
         {"head 304", "end"},
         "",
         true});
}

TEST_F(FramingTest, interim_heads_come_before_the_final_one) {
  check({http::Method::get,
         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
         "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
         {"head 100", "head 103", "head 200", "body", "end"},
         "ok",
         true});
}

TEST_F(FramingTest, a_server_that_will_close_is_not_kept) {
  check({http::Method::get,
         "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
         {"head 200", "body", "end"},
         "ok",
         false});
  check({http::Method::get,
         "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
         {"head 200", "body", "end"},
         "ok",
         false});
}

// ---- what makes a connection unfit

TEST_F(SessionTest, bytes_behind_the_response_make_it_unfit) {
  send();
  arrive("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok!");
  EXPECT_EQ(news(), (News{"head 200", "body", "end"}));
  EXPECT_EQ(request_.body, "ok");
  EXPECT_FALSE(kept());
}

TEST_F(SessionTest, bytes_behind_an_answer_without_a_body_make_it_unfit) {
  send(http::Method::head);
  arrive("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ(news(), (News{"head 200", "end"}));
  EXPECT_EQ(request_.body, "");
  EXPECT_FALSE(kept());
}

TEST_F(SessionTest, bytes_that_come_later_make_it_unfit) {
  send();
  arrive("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  arrive("HTTP/1.1 200 OK\r\n\r\n");
  EXPECT_EQ(news(), (News{"head 200", "body", "end"})) << "not another response";
  EXPECT_FALSE(kept());
}

TEST_F(SessionTest, an_end_behind_the_response_makes_it_unfit_and_is_no_failure) {
  send();
  arrive("HTTP/1.1 204 No Content\r\n\r\n");
  server_ends();
  EXPECT_EQ(news(), (News{"head 204", "end"}));
  EXPECT_FALSE(kept());
}

TEST_F(SessionTest, a_reset_behind_the_response_makes_it_unfit_and_is_no_failure) {
  send();
  arrive("HTTP/1.1 204 No Content\r\n\r\n");
  machine_.end_receive(fd_, -ECONNRESET);
  EXPECT_EQ(news(), (News{"head 204", "end"}));
  EXPECT_FALSE(kept());
}

TEST_F(SessionTest, nothing_of_one_response_is_left_for_the_next) {
  send();
  arrive("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\n");
  EXPECT_EQ(news(), (News{"head 200", "body", "end X=y"}));
  ASSERT_TRUE(kept());
  take();
  send();
  arrive("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\n\r\n");
  EXPECT_EQ(news(), (News{"head 200", "body", "end"})) << "no trailers of the one before";
  EXPECT_EQ(request_.body, "b");
  ASSERT_TRUE(kept());
}

// ---- bodies that are cut

TEST_F(SessionTest, a_body_that_ends_too_early_is_a_failure) {
  for (const char* response :
       {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhell\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhell\r\n0\r\n"}) {
    SCOPED_TRACE(response);
    if (request_.session == nullptr) take();
    send();
    arrive(response);
    server_ends();
    EXPECT_EQ(news(), (News{"head 200", "body", "failed: closed, upstream, no"}));
    machine_.tidy();
    EXPECT_FALSE(sys_.open.contains(fd_));
    request_.arena.release();
  }
}

TEST_F(SessionTest, a_body_that_is_reset_is_a_failure) {
  for (const char* response :
       {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "HTTP/1.1 200 OK\r\n\r\nhell"}) {
    if (request_.session == nullptr) take();
    send();
    arrive(response);
    machine_.end_receive(fd_, -ECONNRESET);
    EXPECT_EQ(news(), (News{"head 200", "body", "failed: reset, upstream, no"}));
    machine_.tidy();
    request_.arena.release();
  }
}

TEST_F(SessionTest, a_reset_that_a_send_took_does_not_end_a_body) {
  send(http::Method::post, length(100));
  arrive("HTTP/1.1 200 OK\r\n\r\nhalf");
  EXPECT_TRUE(session().send_body(machine_.lease("more")));
  send_fails(ECONNRESET);
  EXPECT_EQ(news(), (News{"head 200", "body"})) << "what the server sent before may still come";
  server_ends();  // what the kernel says once a send has taken the error
  EXPECT_EQ(news(), (News{"failed: reset, upstream, no"}));
}

TEST_F(SessionTest, an_end_that_a_send_met_does_end_a_body) {
  send(http::Method::post, length(100));
  arrive("HTTP/1.1 200 OK\r\n\r\nwhole");
  EXPECT_TRUE(session().send_body(machine_.lease("more")));
  send_fails(EPIPE);
  server_ends();
  EXPECT_EQ(news(), (News{"head 200", "body", "end"}));
  EXPECT_FALSE(kept());
}

TEST_F(SessionTest, a_reset_that_a_send_took_does_not_harm_a_body_whose_length_is_known) {
  send(http::Method::post, length(100));
  arrive("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwh");
  EXPECT_TRUE(session().send_body(machine_.lease("more")));
  send_fails(ECONNRESET);
  arrive("ole");
  EXPECT_EQ(news(), (News{"head 200", "body", "end"}));
  EXPECT_FALSE(kept());
}

// ---- may the request be sent again?

TEST_F(SessionTest, a_fresh_connection_that_took_the_request_and_ends_is_not_tried_again) {
  send();
  server_ends();
  EXPECT_EQ(news(), (News{"failed: closed, upstream, no"}));
}

class ReusedTest : public SessionTest {
 protected:
  ReusedTest() {
    send();
    arrive("HTTP/1.1 204 No Content\r\n\r\n");
    news();
    EXPECT_TRUE(kept());
    take();
  }
};

TEST_F(ReusedTest, a_stale_connection_may_be_tried_again_by_whoever_may) {
  send();
  EXPECT_TRUE(request_.reused);
  server_ends();
  EXPECT_EQ(news(), (News{"failed: closed, upstream, reused_only"}));
}

TEST_F(ReusedTest, the_same_with_a_reset) {
  send();
  machine_.end_receive(fd_, -ECONNRESET);
  EXPECT_EQ(news(), (News{"failed: reset, upstream, reused_only"}));
}

TEST_F(ReusedTest, not_once_the_server_has_begun_to_answer) {
  send();
  arrive("HTTP/1.1 2");
  server_ends();
  EXPECT_EQ(news(), (News{"failed: closed, upstream, no"}));
}

TEST_F(ReusedTest, not_once_the_head_has_come) {
  send();
  arrive("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
  server_ends();
  EXPECT_EQ(news(), (News{"head 200", "failed: closed, upstream, no"}));
}

TEST_F(ReusedTest, whatever_was_not_sent_may_always_be_tried_again) {
  request_.send(http::Method::post, length(3));
  send_fails(EPIPE);
  server_ends();
  EXPECT_EQ(news(), (News{"failed: closed, upstream, yes"}));
}

TEST_F(ReusedTest, a_send_in_flight_may_have_reached_the_server) {
  request_.send();
  machine_.settle();
  ASSERT_TRUE(machine_.sending(fd_));
  server_ends();
  EXPECT_EQ(news(), (News{"failed: closed, upstream, reused_only"}));
}

TEST_F(SessionTest, a_send_in_flight_on_a_fresh_connection_is_not_tried_again) {
  request_.send();
  machine_.settle();
  server_ends();
  EXPECT_EQ(news(), (News{"failed: closed, upstream, no"}));
}

TEST_F(SessionTest, one_byte_that_left_has_reached_the_server) {
  request_.send();
  machine_.settle();
  machine_.leave(fd_, 1);
  send_fails(ECONNRESET);
  machine_.end_receive(fd_, -ECONNRESET);
  EXPECT_EQ(news(), (News{"failed: reset, upstream, no"}));
}

// ---- messages that break the protocol

TEST_F(SessionTest, a_message_that_is_none) {
  for (const char* response :
       {"garbage\r\n\r\n", "HTTP/3.0 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"}) {
    SCOPED_TRACE(response);
    if (request_.session == nullptr) take();
    send();
    log_.lines.clear();
    arrive(response);
    EXPECT_EQ(news(), (News{"failed: bad message, upstream, no"}));
    EXPECT_EQ(log_.lines.size(), 1U) << "the operator is told why";
    machine_.tidy();
    EXPECT_FALSE(sys_.open.contains(fd_));
    request_.arena.release();
  }
}

TEST_F(SessionTest, a_broken_message_is_not_tried_again_on_a_reused_connection_either) {
  send();
  arrive("HTTP/1.1 204 No Content\r\n\r\n");
  news();
  ASSERT_TRUE(kept());
  take();
  send();
  arrive("garbage\r\n\r\n");
  EXPECT_EQ(news(), (News{"failed: bad message, upstream, no"}));
}

TEST_F(SessionTest, broken_chunks_and_trailers) {
  for (const char* body : {"zz\r\n", "1\r\nab\r\n", "0\r\nno trailer\r\n\r\n"}) {
    SCOPED_TRACE(body);
    if (request_.session == nullptr) take();
    send();
    arrive(std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n") + body);
    News told = news();
    EXPECT_EQ(told.back(), "failed: bad message, upstream, no");
    EXPECT_EQ(told.front(), "head 200");
    machine_.tidy();
    request_.arena.release();
  }
}

TEST_F(SessionTest, a_head_without_an_end_is_given_up) {
  send();
  arrive("HTTP/1.1 200 OK\r\n");
  std::string field = "X: " + std::string(400, 'x') + "\r\n";
  for (int i = 0; i < 200 && request_.session != nullptr; ++i)
    arrive(field);
  EXPECT_EQ(news(), (News{"failed: bad message, upstream, no"}));
}

// ---- handlers that end the session

TEST_F(SessionTest, abandoned_in_a_handler_it_tells_no_more) {
  const std::string response =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "1\r\na\r\n1\r\nb\r\n0\r\n\r\n";
  for (const char* event : {"head 100", "head 200", "body", "end"}) {
    SCOPED_TRACE(event);
    if (request_.session == nullptr) take();
    send();
    request_.action = [&](const std::string& told) {
      if (told == event) request_.session->abandon();
    };
    arrive(response);
    EXPECT_EQ(news().back(), event);
    EXPECT_EQ(request_.body, std::string(event) == "body" ? "a" : event[0] == 'e' ? "ab" : "");
    request_.action = nullptr;
    request_.session = nullptr;
    request_.arena.release();
    machine_.tidy();
    EXPECT_FALSE(sys_.open.contains(fd_));
  }
}

TEST_F(SessionTest, finished_in_the_handler_it_is_kept) {
  send();
  request_.action = [&](const std::string& told) {
    if (told == "end") request_.finish();
  };
  arrive("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ(news(), (News{"head 200", "body", "end"}));
  EXPECT_EQ(server().idle(0), 1U);
}

// ---- back-pressure

TEST_F(SessionTest, parked_it_stops_after_what_is_under_way) {
  send();
  arrive("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
  session().park();
  machine_.arrive(fd_, "def", true);
  EXPECT_FALSE(machine_.receiving(fd_));
  EXPECT_EQ(request_.body, "abcdef");
  session().resume();
  machine_.settle();
  arrive("ghi");
  EXPECT_EQ(request_.body, "abcdefghi");
  EXPECT_TRUE(kept());
}

TEST_F(SessionTest, finished_while_it_is_parked_it_still_hears_of_the_servers_end) {
  send();
  session().park();
  machine_.arrive(fd_, "HTTP/1.1 204 No Content\r\n\r\n", true);
  EXPECT_FALSE(machine_.receiving(fd_));
  EXPECT_TRUE(kept());
  server_ends();
  EXPECT_EQ(server().idle(0), 0U);
}

}  // namespace
}  // namespace ringside::upstream::test
