#include "messages.h"

namespace ringside::filter {
namespace {

TEST(TrustedProxies, Ranges) {
  const TrustedProxies some(
      {"10.0.0.0/8", "192.168.1.64/26", "::1", "2001:db8::/33", "198.51.100.7"});
  for (const char* yes :
       {"10.0.0.0", "10.255.255.255", "192.168.1.64", "192.168.1.127", "::1", "0:0:0:0:0:0:0:1",
        "2001:db8:7fff::1", "198.51.100.7", "::ffff:10.1.2.3"}) {
    EXPECT_TRUE(some.trusts(yes)) << yes;
  }
  for (const char* no : {"11.0.0.0", "9.255.255.255", "192.168.1.63", "192.168.1.128", "::2",
                         "2001:db8:8000::1", "198.51.100.8", "", "unix:", "10.0.0", "10.0.0.01",
                         "10.0.0.0.0", "10.0.0.256", "10.0.0.1 ", "a", ":", "::a00:1"}) {
    EXPECT_FALSE(some.trusts(no)) << no;
  }
  EXPECT_FALSE(TrustedProxies({}).trusts("10.0.0.1"));
  EXPECT_TRUE(TrustedProxies({"0.0.0.0/0"}).trusts("8.8.8.8"));
  EXPECT_FALSE(TrustedProxies({"0.0.0.0/0"}).trusts("::1"));
  EXPECT_TRUE(TrustedProxies({"::/0"}).trusts("::1"));
  EXPECT_FALSE(TrustedProxies({"::/0"}).trusts("8.8.8.8"));
  EXPECT_TRUE(TrustedProxies({"::ffff:10.0.0.0/104"}).trusts("10.9.9.9"));
  EXPECT_FALSE(TrustedProxies({"::ffff:10.0.0.0/104"}).trusts("11.9.9.9"));
  EXPECT_TRUE(TrustedProxies({"unix"}).trusts("unix:"));
  EXPECT_FALSE(TrustedProxies({"unix"}).trusts("127.0.0.1"));
}

struct Found {
  std::string address;
  int port;
  bool trusted;
  friend bool operator==(const Found&, const Found&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Found& f) {
    return out << f.address << " " << f.port << " " << f.trusted;
  }
};

Found client_of(std::string_view fields, std::string_view peer = "10.0.0.1",
                const std::vector<std::string>& ranges = {"10.0.0.0/8", "fd00::/8", "unix"}) {
  Exchange e(fields);
  e.facts.peer_address = peer;
  e.facts.peer_port = 99;
  e.trust(ranges);
  return {std::string(e.facts.client_address), e.facts.client_port, e.facts.peer_trusted};
}

TEST(FindClient, AStrangerIsTheClientItself) {
  EXPECT_EQ(client_of("X-Forwarded-For: 1.1.1.1\n", "8.8.8.8"), (Found{"8.8.8.8", 99, false}));
  EXPECT_EQ(client_of("X-Forwarded-For: 1.1.1.1\n", "10.0.0.1", {}),
            (Found{"10.0.0.1", 99, false}));
}

TEST(FindClient, FromRightToLeftThroughTrustedOnes) {
  EXPECT_EQ(client_of(""), (Found{"10.0.0.1", 99, true}));
  EXPECT_EQ(client_of("X-Forwarded-For: 1.1.1.1\n"), (Found{"1.1.1.1", 0, true}));
  EXPECT_EQ(client_of("X-Forwarded-For: 6.6.6.6, 1.1.1.1, 10.0.0.2\n"),
            (Found{"1.1.1.1", 0, true}));
  EXPECT_EQ(client_of("X-Forwarded-For: 6.6.6.6\nX-Forwarded-For: 1.1.1.1\nX-Forwarded-For: "
                      "fd00::1,10.9.9.9\n"),
            (Found{"1.1.1.1", 0, true}));
  EXPECT_EQ(client_of("X-Forwarded-For: 10.0.0.3, 10.0.0.2\n"), (Found{"10.0.0.3", 0, true}));
  EXPECT_EQ(client_of("X-Forwarded-For: 1.1.1.1\n", "unix:"), (Found{"1.1.1.1", 0, true}));
}

TEST(FindClient, Ports) {
  EXPECT_EQ(client_of("X-Forwarded-For: 1.1.1.1:4711\n"), (Found{"1.1.1.1", 4711, true}));
  EXPECT_EQ(client_of("X-Forwarded-For: [2001:db8::1]:4711\n"), (Found{"2001:db8::1", 4711, true}));
  EXPECT_EQ(client_of("X-Forwarded-For: [2001:db8::1]\n"), (Found{"2001:db8::1", 0, true}));
  EXPECT_EQ(client_of("X-Forwarded-For: 2001:db8::1\n"), (Found{"2001:db8::1", 0, true}));
}

TEST(FindClient, GarbageEndsTheWalkAtTheLastGoodAddress) {
  EXPECT_EQ(client_of("X-Forwarded-For: 1.1.1.1, unknown\n"), (Found{"10.0.0.1", 99, true}));
  EXPECT_EQ(client_of("X-Forwarded-For: 1.1.1.1, <x>, 10.0.0.2:5\n"), (Found{"10.0.0.2", 5, true}));
  EXPECT_EQ(client_of("X-Forwarded-For: ,, 1.1.1.1 , ,\n"), (Found{"1.1.1.1", 0, true}));
  for (const char* bad : {"1.1.1.1:", "1.1.1.1:x", "1.1.1.1:65536", "[::1", "[1.1.1.1]", "[::1]x",
                          "::1]", "[]", "1.1.1", "1.1.1.1.1", "\"1.1.1.1\"", "fe80::1%eth0"}) {
    EXPECT_EQ(client_of("X-Forwarded-For: " + std::string(bad) + "\n"),
              (Found{"10.0.0.1", 99, true}))
        << bad;
  }
  EXPECT_EQ(client_of("X-Forwarded-For: " + std::string(256, '1') + "\n"),
            (Found{"10.0.0.1", 99, true}));
}

TEST(FindClient, AHopByHopListDoesNotCount) {
  EXPECT_EQ(client_of("Connection: X-Forwarded-For\nX-Forwarded-For: 1.1.1.1\n"),
            (Found{"10.0.0.1", 99, true}));
}

TEST(FindClient, ForwardedWhenThereIsNoXForwardedFor) {
  EXPECT_EQ(client_of("Forwarded: for=6.6.6.6, for=1.1.1.1;proto=https, for=10.0.0.2\n"),
            (Found{"1.1.1.1", 0, true}));
  EXPECT_EQ(client_of("Forwarded: for=1.1.1.1\nX-Forwarded-For: 2.2.2.2\n"),
            (Found{"2.2.2.2", 0, true}));
  EXPECT_EQ(client_of("Forwarded: by=x ; FOR=\"[2001:db8::1]:4711\"\n"),
            (Found{"2001:db8::1", 4711, true}));
  EXPECT_EQ(client_of("Forwarded: for=\"1.1.1.1:_p\"\n"), (Found{"1.1.1.1", 0, true}));
  EXPECT_EQ(client_of("Forwarded: for=\"1.1\\.1.1\"\n"), (Found{"1.1.1.1", 0, true}));
  EXPECT_EQ(client_of("Forwarded: for=6.6.6.6\nForwarded: for=1.1.1.1\nForwarded: for=10.0.0.2\n"),
            (Found{"1.1.1.1", 0, true}));
  EXPECT_EQ(client_of("Forwarded: ,, for=1.1.1.1;, ,\n"), (Found{"1.1.1.1", 0, true}));
}

// C20.
TEST(FindClient, ForwardedQuotingIsRespected) {
  // The comma is inside the quotes: the nearest element is obfuscated, so the walk ends at once.
  EXPECT_EQ(client_of("Forwarded: for=\"[::1]\", for=\"a,b\";by=c\n"),
            (Found{"10.0.0.1", 99, true}));
  EXPECT_EQ(client_of("Forwarded: for=\"x, for=6.6.6.6\", for=10.0.0.2\n"),
            (Found{"10.0.0.2", 0, true}));
  EXPECT_EQ(client_of("Forwarded: for=1.1.1.1;by=\"\\\", for=6.6.6.6\"\n"),
            (Found{"1.1.1.1", 0, true}));
  EXPECT_EQ(client_of("Forwarded: for=1.1.1.1, for=unknown\n"), (Found{"10.0.0.1", 99, true}));
  EXPECT_EQ(client_of("Forwarded: for=1.1.1.1, for=_hidden\n"), (Found{"10.0.0.1", 99, true}));
  EXPECT_EQ(client_of("Forwarded: for=1.1.1.1, proto=https\n"), (Found{"10.0.0.1", 99, true}));
  for (const char* bad :
       {"for=\"1.1.1.1", "for=1.1.1.1;for=2.2.2.2", "for", "for=", "=1.1.1.1", "for=1.1.1.1 by=x",
        "for=\"1.1.1.1\"x", "for = 1.1.1.1", "for=\"1.1.1.1\\", "for=[::1]"}) {
    EXPECT_EQ(client_of("Forwarded: " + std::string(bad) + "\n"), (Found{"10.0.0.1", 99, true}))
        << bad;
  }
}

TEST(FindClient, TheAddressOutlivesTheHead) {
  Exchange e("X-Forwarded-For: 1.1.1.1\n");
  e.trust_peer();
  for (const http::Field& field : e.request.fields) {
    const char* begin = field.value.data();
    EXPECT_FALSE(e.facts.client_address.data() >= begin &&
                 e.facts.client_address.data() < begin + field.value.size());
  }
}

}  // namespace
}  // namespace ringside::filter
