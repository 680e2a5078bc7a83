#include "ringside/net/listener_set.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <string>

namespace ringside::net {
namespace {

unsigned sleeps = 0;
void count_sleep(unsigned) {
  ++sleeps;
}

config::Snapshot listening(std::vector<config::Endpoint> addresses) {
  config::Snapshot snapshot;
  config::Listen listen;
  listen.name = "web";
  listen.addresses = std::move(addresses);
  snapshot.listens.push_back(listen);
  return snapshot;
}

config::Endpoint tcp(std::string host, std::uint16_t port) {
  bool six = host.find(':') != std::string::npos;
  config::Endpoint out;
  out.kind = six ? config::Endpoint::Kind::ipv6 : config::Endpoint::Kind::ipv4;
  out.text = (six ? "[" + host + "]" : host) + ":" + std::to_string(port);
  out.host = std::move(host);
  out.port = port;
  return out;
}

config::Endpoint unix_path(const std::string& path) {
  config::Endpoint out;
  out.kind = config::Endpoint::Kind::unix_socket;
  out.text = "unix:" + path;
  out.path = path;
  return out;
}

bool accepts(const Address& address) {
  int fd = ::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool connected = ::connect(fd, address.raw(), address.length()) == 0;
  ::close(fd);
  return connected;
}

class ListenerSetTest : public testing::Test {
 protected:
  ListenerSetTest() {
    const char* parent = std::getenv("TMPDIR");
    folder_ = std::string(parent != nullptr ? parent : "/tmp") + "/ringside-unit-XXXXXX";
    if (::mkdtemp(folder_.data()) == nullptr) std::abort();
    sleeps = 0;
  }
  ~ListenerSetTest() override {
    ::unlink(path().c_str());
    ::rmdir(folder_.c_str());
  }
  std::string path() const { return folder_ + "/s"; }
  std::string folder_;
  ListenerSet set_{real_sys()};
};

TEST_F(ListenerSetTest, all_rings_share_the_port_that_the_kernel_chose) {
  EXPECT_TRUE(set_.open(listening({tcp("127.0.0.1", 0)}), 3, count_sleep).empty());
  ASSERT_EQ(set_.listeners().size(), 1U);
  const BoundListener& bound = set_.listeners().front();
  ASSERT_EQ(bound.descriptors.size(), 3U);
  EXPECT_NE(bound.address.port(), 0);
  for (int fd : bound.descriptors)
    EXPECT_EQ(*real_sys().local_address(fd), bound.address);
  EXPECT_TRUE(accepts(bound.address));
}

int deferred_seconds(int fd) {
  int value = -1;
  socklen_t bytes = sizeof value;
  ::getsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &value, &bytes);
  return value;
}

TEST_F(ListenerSetTest, connections_without_a_byte_are_kept_back_where_that_is_wanted) {
  config::Snapshot snapshot = listening({tcp("127.0.0.1", 0), unix_path(path())});
  ASSERT_TRUE(set_.open(snapshot, 2, count_sleep).empty());
  EXPECT_EQ(deferred_seconds(set_.listeners()[0].descriptors[0]), 0);
  set_.close_all();
  snapshot.listens[0].defer_accept_ms = 3000;
  ASSERT_TRUE(set_.open(snapshot, 2, count_sleep).empty());
  for (int fd : set_.listeners()[0].descriptors)
    EXPECT_EQ(deferred_seconds(fd), 3);
  EXPECT_TRUE(accepts(set_.listeners()[1].address));
}

TEST_F(ListenerSetTest, a_busy_address_is_tried_again_and_then_named_and_nothing_stays_bound) {
  int other = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  Address busy = *Address::from_ip("127.0.0.1", 0);
  ASSERT_EQ(::bind(other, busy.raw(), busy.length()), 0);
  ASSERT_EQ(::listen(other, 1), 0);
  busy = *real_sys().local_address(other);
  auto failures =
      set_.open(listening({tcp("127.0.0.1", 0), tcp("127.0.0.1", busy.port())}), 1, count_sleep);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].text,
            "listen.web: 127.0.0.1:" + std::to_string(busy.port()) + ": Address already in use");
  EXPECT_GT(sleeps, 0U);
  EXPECT_TRUE(set_.listeners().empty());
  ::close(other);
}

TEST_F(ListenerSetTest, a_unix_socket_is_shared_by_duplicates) {
  EXPECT_TRUE(set_.open(listening({unix_path(path())}), 2, count_sleep).empty());
  const auto& descriptors = set_.listeners().front().descriptors;
  EXPECT_EQ(std::set<int>(descriptors.begin(), descriptors.end()).size(), 2U);
  EXPECT_TRUE(accepts(*Address::from_unix(path())));
}

TEST_F(ListenerSetTest, a_stale_unix_socket_is_replaced_a_live_one_is_not) {
  Address address = *Address::from_unix(path());
  int stale = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(stale, address.raw(), address.length()), 0);
  ::close(stale);
  EXPECT_TRUE(set_.open(listening({unix_path(path())}), 1, count_sleep).empty());
  ListenerSet second(real_sys());
  auto failures = second.open(listening({unix_path(path())}), 1, count_sleep);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].error.sys_errno, EADDRINUSE);
  EXPECT_TRUE(accepts(address)) << "the first must go on";
}

TEST_F(ListenerSetTest, a_file_that_is_no_socket_is_left_alone) {
  FILE* file = ::fopen(path().c_str(), "w");
  ASSERT_NE(file, nullptr);
  ::fclose(file);
  auto failures = set_.open(listening({unix_path(path())}), 1, count_sleep);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(::access(path().c_str(), F_OK), 0);
}

TEST_F(ListenerSetTest, released_descriptors_stay_open) {
  ASSERT_TRUE(set_.open(listening({tcp("127.0.0.1", 0)}), 1, count_sleep).empty());
  auto released = set_.release();
  set_.close_all();
  EXPECT_TRUE(accepts(released.front().address));
  real_sys().close(released.front().descriptors.front());
}

}  // namespace
}  // namespace ringside::net
