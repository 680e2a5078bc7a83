// WebSockets over HTTP/2 (RFC 8441), to a server that speaks HTTP/1.1 and is played by the test.
#include <netinet/in.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "ringside/http/websocket.h"

#include "../http/h2_peer.h"
#include "worker_fixture.h"

namespace ringside::proxy {
namespace {

using namespace test;

constexpr std::uint8_t data = 0;
constexpr std::uint8_t headers = 1;
constexpr std::uint8_t rst_stream = 3;

struct H2WebsocketTest : WorkerTest {
  void SetUp() override {
    WorkerTest::SetUp();
    server_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::bind(server_, reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
    ASSERT_EQ(::listen(server_, 8), 0);
    socklen_t size = sizeof any;
    ::getsockname(server_, reinterpret_cast<sockaddr*>(&any), &size);
    worker_->request_swap(
        std::make_shared<Runtime>(snapshot("", ntohs(any.sin_port)), 1, runtime_.get()));
    worker_->run_once(1);
    clients_.push_back(server_);
    client_ = connect();
    send(client_, std::string(h2_preface) + h2_settings());
  }

  void open(std::uint32_t stream) {
    H2FieldList fields = h2_request("CONNECT", "/up/chat?room=1",
                                    {{"sec-websocket-version", "13"}, {"origin", "http://a"}});
    fields.insert(fields.begin(), {":protocol", "websocket"});
    send(client_, h2_headers(stream, fields, false));
  }

  // Turns the loop until `done`.
  template <typename Done>
  bool until(Done done) {
    for (int turns = 0; turns < 3000; ++turns) {
      if (done()) return true;
      worker_->run_once(1);
      read_client();
    }
    return done();
  }
  void read_client() {
    char in[65536];
    const ssize_t got = ::recv(client_, in, sizeof in, MSG_DONTWAIT);
    if (got > 0) from_proxy_.append(in, static_cast<std::size_t>(got));
  }

  // What the server is asked; it keeps the connection.
  std::string asked() {
    std::string head;
    until([&] {
      if (upstream_ < 0) upstream_ = ::accept4(server_, nullptr, nullptr, SOCK_NONBLOCK);
      if (upstream_ >= 0) head += read_upstream();
      return head.ends_with("\r\n\r\n");
    });
    if (upstream_ >= 0) clients_.push_back(upstream_);
    return head;
  }
  std::string read_upstream() {
    char in[65536];
    const ssize_t got = ::recv(upstream_, in, sizeof in, MSG_DONTWAIT);
    upstream_ended_ = upstream_ended_ || got == 0 || (got < 0 && errno == ECONNRESET);
    return {in, got > 0 ? static_cast<std::size_t>(got) : 0};
  }
  static std::string value_of(const std::string& head, std::string_view name) {
    const std::size_t at = head.find("\r\n" + std::string(name) + ": ");
    if (at == std::string::npos) return "(none)";
    const std::size_t from = at + 2 + name.size() + 2;
    return head.substr(from, head.find('\r', from) - from);
  }
  static std::string accept_of(const std::string& head) {
    const auto accept = http::websocket_accept(value_of(head, http::websocket_key_name));
    return {accept.data(), accept.size()};
  }
  void switch_protocols(const std::string& accept) {
    send(upstream_,
         "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Accept: " +
             accept + "\r\nX-Room: 1\r\n\r\n");
  }
  // A tunnel on stream 1.
  void tunnel() {
    open(1);
    switch_protocols(accept_of(asked()));
    ASSERT_TRUE(until([&] { return !frames(headers, 1).empty(); }));
  }

  std::vector<H2Frame> frames(std::uint8_t type, std::uint32_t stream) const {
    std::vector<H2Frame> out;
    for (H2Frame& frame : h2_split(from_proxy_)) {
      if (frame.type == type && frame.stream == stream) out.push_back(std::move(frame));
    }
    return out;
  }
  std::string data_of(std::uint32_t stream) const {
    std::string out;
    for (const H2Frame& frame : frames(data, stream))
      out += frame.payload;
    return out;
  }
  bool ended(std::uint32_t stream) const {
    for (const std::uint8_t type : {headers, data}) {
      for (const H2Frame& frame : frames(type, stream)) {
        if ((frame.flags & h2_end_stream) != 0) return true;
      }
    }
    return false;
  }
  // `block`: of a status, as HPACK has it (RFC 7541 Appendix A).
  bool has_status(std::uint32_t stream, std::string_view block) const {
    const auto heads = frames(headers, stream);
    return heads.size() == 1 && heads[0].payload.starts_with(block);  // it comes first
  }

  int server_ = -1;
  int upstream_ = -1;
  int client_ = -1;
  bool upstream_ended_ = false;
  std::string from_proxy_;
};

constexpr std::string_view status_200 = "\x88";

TEST_F(H2WebsocketTest, bytes_pass_in_both_directions) {
  open(1);
  send(client_, h2_data(1, "early", false));
  const std::string head = asked();
  EXPECT_TRUE(head.starts_with("GET /up/chat?room=1 HTTP/1.1\r\nHost: a.test\r\n")) << head;
  EXPECT_EQ(value_of(head, "Connection"), "Upgrade");
  EXPECT_EQ(value_of(head, "Upgrade"), "websocket");
  EXPECT_EQ(value_of(head, "sec-websocket-version"), "13");
  EXPECT_EQ(value_of(head, "origin"), "http://a");
  EXPECT_EQ(value_of(head, "Sec-WebSocket-Key").size(), http::websocket_key_bytes);
  EXPECT_EQ(head.find("Transfer-Encoding"), std::string::npos);
  switch_protocols(accept_of(head));
  std::string arrived;
  EXPECT_TRUE(until([&] { return (arrived += read_upstream()) == "early"; })) << arrived;
  EXPECT_TRUE(has_status(1, status_200));
  EXPECT_FALSE(ended(1));
  send(upstream_, "from the server");
  EXPECT_TRUE(until([&] { return data_of(1) == "from the server"; }));
  send(client_, h2_data(1, " and late", false));
  EXPECT_TRUE(until([&] { return (arrived += read_upstream()) == "early and late"; })) << arrived;
  send(client_, h2_data(1, "", true));
  EXPECT_TRUE(until([&] {
    read_upstream();
    return upstream_ended_;
  }));
  send(upstream_, "bye");
  ::shutdown(upstream_, SHUT_WR);
  EXPECT_TRUE(until([&] { return ended(1); }));
  EXPECT_EQ(data_of(1), "from the serverbye");
  EXPECT_TRUE(until([&] { return records_.count == 1; }));
  EXPECT_TRUE(frames(rst_stream, 1).empty());
  EXPECT_EQ(records_.status, 200);
  EXPECT_EQ(records_.end.cause, Cause::complete);
}

TEST_F(H2WebsocketTest, each_has_a_key_of_its_own) {
  open(1);
  const std::string first = value_of(asked(), "Sec-WebSocket-Key");
  upstream_ = -1;
  open(3);
  EXPECT_NE(value_of(asked(), "Sec-WebSocket-Key"), first);
}

TEST_F(H2WebsocketTest, a_server_that_proves_nothing_is_no_websocket) {
  open(1);
  asked();
  switch_protocols("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  EXPECT_TRUE(until([&] { return ended(1); }));
  EXPECT_FALSE(has_status(1, status_200));
  EXPECT_TRUE(until([&] { return records_.count == 1; }));
  EXPECT_EQ(records_.status, 502);
  EXPECT_EQ(records_.end,
            (EndReason{base::Origin::upstream, Stage::wait_response, Cause::bad_message}));
}

TEST_F(H2WebsocketTest, an_answer_of_success_without_a_tunnel_is_none) {
  open(1);
  asked();
  send(upstream_, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_TRUE(until([&] { return records_.count == 1; }));
  EXPECT_EQ(records_.status, 502);
  EXPECT_TRUE(ended(1));
}

TEST_F(H2WebsocketTest, a_refusal_goes_to_the_client) {
  open(1);
  asked();
  send(upstream_, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
  EXPECT_TRUE(until([&] { return records_.count == 1; }));
  EXPECT_EQ(records_.status, 403);
  EXPECT_EQ(data_of(1), "no");
  EXPECT_TRUE(ended(1));
  EXPECT_TRUE(until([&] { return frames(rst_stream, 1).size() == 1; }))
      << "the client has not ended its side";
  EXPECT_EQ(frames(rst_stream, 1)[0].number(0), 0U);
}

TEST_F(H2WebsocketTest, a_server_that_breaks_is_a_reset) {
  tunnel();
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(upstream_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ::close(upstream_);
  std::erase(clients_, upstream_);
  ASSERT_TRUE(until([&] { return frames(rst_stream, 1).size() == 1; }));
  EXPECT_EQ(frames(rst_stream, 1)[0].number(0), static_cast<unsigned>(http::H2Code::cancel));
  EXPECT_TRUE(until([&] { return records_.count == 1; }));
  EXPECT_EQ(records_.end.who, base::Origin::upstream);
  EXPECT_EQ(records_.end.stage, Stage::tunnel);
}

TEST_F(H2WebsocketTest, a_reset_ends_the_servers_connection) {
  tunnel();
  send(client_, h2_reset(1, 8));
  EXPECT_TRUE(until([&] {
    read_upstream();
    return upstream_ended_;
  }));
  EXPECT_TRUE(until([&] { return records_.count == 1; }));
  EXPECT_EQ(records_.end, (EndReason{base::Origin::client, Stage::tunnel, Cause::reset}));
  open(3);
  upstream_ = -1;
  EXPECT_FALSE(asked().empty()) << "the connection lives";
}

}  // namespace
}  // namespace ringside::proxy
