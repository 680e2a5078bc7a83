#include "ocsp_fetch.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ringside::app {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds long_limit{60'000};
constexpr milliseconds short_limit{50};

// An OCSPRequest of nobody's: what is in it does not matter here.
constexpr unsigned char request[] = {0x30, 0x04, 0x30, 0x02, 0x30, 0x00};
constexpr const char* response =
    "HTTP/1.1 200 OK\r\nContent-Type: application/ocsp-response\r\n\r\n\x30\x03\x0a\x01\x03";

// Listens on 127.0.0.1. With an answer or something to do it takes one connection, reads the
// request, and does that; a connection without an answer is left to the other end.
class Responder {
 public:
  explicit Responder(const std::string& answer, const std::function<void()>& asked = {}) {
    ::signal(SIGPIPE, SIG_IGN);
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(socket_, 8), 0);
    socklen_t size = sizeof address;
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    if (answer.empty() && !asked) return;
    thread_ = std::thread([this, answer, asked] {
      const int peer = ::accept(socket_, nullptr, nullptr);
      char text[4096];
      [[maybe_unused]] auto got = ::read(peer, text, sizeof text);
      if (asked) asked();
      if (answer.empty()) {
        while (got > 0)
          got = ::read(peer, text, sizeof text);
      }
      [[maybe_unused]] const auto sent = ::write(peer, answer.data(), answer.size());
      ::close(peer);
    });
  }
  ~Responder() {
    if (thread_.joinable()) thread_.join();
    ::close(socket_);
  }
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;
  tls::OcspQuestion question(const std::string& host = "127.0.0.1") const {
    tls::OcspQuestion out;
    out.host = host;
    out.port = std::to_string(port_);
    out.path = "/";
    out.request.assign(request, request + sizeof request);
    return out;
  }

 private:
  int socket_ = -1;
  unsigned short port_ = 0;
  std::thread thread_;
};

class OcspFetchTest : public testing::Test {
 protected:
  ~OcspFetchTest() override { ::close(cancel_); }
  void cancel() const {
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(cancel_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
  std::string failure(const tls::OcspQuestion& question, milliseconds limit,
                      const Resolve& resolve = resolve_by_system) const {
    const auto fetched = fetch_ocsp(question, cancel_, limit, resolve);
    return fetched ? "none" : fetched.error();
  }

  int cancel_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
};

TEST_F(OcspFetchTest, TheAnswerIsBroughtBack) {
  const Responder responder(response);
  const auto fetched = fetch_ocsp(responder.question(), cancel_, long_limit);
  ASSERT_TRUE(fetched) << fetched.error();
  EXPECT_EQ(*fetched, (tls::Der{0x30, 0x03, 0x0a, 0x01, 0x03}));
}

TEST_F(OcspFetchTest, NoProxyIsAsked) {
  const Responder responder(response);
  ::setenv("http_proxy", "http://127.0.0.1:1/", 1);
  EXPECT_TRUE(fetch_ocsp(responder.question(), cancel_, long_limit));
  ::unsetenv("http_proxy");
}

TEST_F(OcspFetchTest, EveryAddressIsTried) {
  const Responder responder(response);
  const auto resolve =
      [](const std::string&) -> std::expected<std::vector<net::Address>, std::string> {
    // Nobody is at the first one.
    return std::vector{*net::Address::from_ip("127.0.0.2", 0),
                       *net::Address::from_ip("127.0.0.1", 0)};
  };
  const auto fetched = fetch_ocsp(responder.question("ocsp.test"), cancel_, long_limit, resolve);
  EXPECT_TRUE(fetched) << fetched.error();
}

TEST_F(OcspFetchTest, OneThatHangsIsGivenUp) {
  const Responder responder("");
  EXPECT_EQ(failure(responder.question(), short_limit), "no answer in time");
}

TEST_F(OcspFetchTest, OneThatIsNotThereIsNamed) {
  tls::OcspQuestion question;
  {
    const Responder responder("");
    question = responder.question();
  }
  EXPECT_EQ(failure(question, long_limit), "127.0.0.1:" + question.port + ": Connection refused");
}

TEST_F(OcspFetchTest, NamesThatAreNotFound) {
  const Responder responder("");
  const auto unknown =
      [](const std::string&) -> std::expected<std::vector<net::Address>, std::string> {
    return std::unexpected("nobody knows");
  };
  EXPECT_EQ(failure(responder.question("ocsp.test"), long_limit, unknown),
            "ocsp.test: nobody knows");
  const auto none = [](const std::string&) { return std::vector<net::Address>(); };
  EXPECT_EQ(failure(responder.question("ocsp.test"), long_limit, none), "no address");
}

TEST_F(OcspFetchTest, PortsThatAreNone) {
  for (const char* port : {"0", "70000", "", "8x"}) {
    tls::OcspQuestion question;
    question.host = "127.0.0.1";
    question.port = port;
    EXPECT_EQ(failure(question, long_limit), std::string("port ") + port + " is none");
  }
}

TEST_F(OcspFetchTest, ItStopsWhenItIsTold) {
  const Responder responder("");
  cancel();
  EXPECT_EQ(failure(responder.question(), long_limit), "127.0.0.1: stopped");
}

TEST_F(OcspFetchTest, ItStopsDuringTheTransfer) {
  const Responder responder("", [this] { cancel(); });
  EXPECT_EQ(failure(responder.question(), long_limit), "stopped");
}

TEST_F(OcspFetchTest, ALookupThatHangsHoldsNobodyUp) {
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
    unsigned left = 0;
  };
  const auto gate = std::make_shared<Gate>();
  const auto resolve =
      [gate](const std::string&) -> std::expected<std::vector<net::Address>, std::string> {
    std::unique_lock lock(gate->mutex);
    gate->changed.wait(lock, [&] { return gate->open; });
    ++gate->left;
    gate->changed.notify_all();
    return std::unexpected("too late");
  };
  const Responder responder("");
  EXPECT_EQ(failure(responder.question("ocsp.test"), short_limit, resolve),
            "ocsp.test: no answer in time");
  std::unique_lock lock(gate->mutex);
  gate->open = true;
  gate->changed.notify_all();
  gate->changed.wait(lock, [&] { return gate->left == 1; });
}

}  // namespace
}  // namespace ringside::app
