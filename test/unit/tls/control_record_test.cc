#include "ringside/tls/control_record.h"

#include <gtest/gtest.h>
#include <linux/tls.h>

#include <cstring>
#include <string>
#include <vector>

namespace ringside::tls {
namespace {

using Kind = ControlRecord::Kind;
using Bytes = std::vector<unsigned char>;

constexpr std::uint8_t alert = 21;
constexpr std::uint8_t handshake = 22;

ControlRecord read(std::uint8_t type, const Bytes& bytes, Version version = Version::tls13) {
  ControlParser parser(version);
  return parser.read(type, bytes);
}

Bytes ticket(std::size_t bytes) {
  Bytes out(4 + bytes, 0xaa);
  out[0] = 4;
  out[1] = 0;
  out[2] = static_cast<unsigned char>(bytes >> 8);
  out[3] = static_cast<unsigned char>(bytes);
  return out;
}

TEST(ControlRecord, Alerts) {
  for (const Version version : {Version::tls12, Version::tls13}) {
    EXPECT_EQ(read(alert, {1, 0}, version).kind, Kind::close);
    EXPECT_EQ(read(alert, {2, 0}, version).kind, Kind::close);
    EXPECT_EQ(read(alert, {2, 20}, version), (ControlRecord{.kind = Kind::alert, .alert = 20}));
    EXPECT_EQ(read(alert, {1, 90}, version).kind, Kind::ignored);
    EXPECT_EQ(read(alert, {1}, version).kind, Kind::unexpected);
    EXPECT_EQ(read(alert, {1, 0, 0}, version).kind, Kind::unexpected);
    EXPECT_EQ(read(alert, {}, version).kind, Kind::unexpected);
  }
  EXPECT_EQ(read(alert, {1, 100}, Version::tls12).kind, Kind::ignored);
  EXPECT_EQ(read(alert, {1, 100}, Version::tls13).kind, Kind::alert) << "the level says nothing";
}

TEST(ControlRecord, KeyUpdates) {
  EXPECT_EQ(read(handshake, {24, 0, 0, 1, 0}), (ControlRecord{.kind = Kind::key_update}));
  EXPECT_EQ(read(handshake, {24, 0, 0, 1, 1}),
            (ControlRecord{.kind = Kind::key_update, .reply_requested = true}));
  EXPECT_EQ(read(handshake, {24, 0, 0, 1, 2}).kind, Kind::unexpected);
  EXPECT_EQ(read(handshake, {24, 0, 0, 2, 0, 0}).kind, Kind::unexpected);
  EXPECT_EQ(read(handshake, {24, 0, 0, 0}).kind, Kind::unexpected);
  EXPECT_EQ(read(handshake, {24, 0, 0, 1, 0, 4}).kind, Kind::unexpected) << "nothing may follow";
  EXPECT_EQ(read(handshake, {24, 0, 0, 1, 0}, Version::tls12).kind, Kind::unexpected);
}

TEST(ControlRecord, TicketsAreDropped) {
  EXPECT_EQ(read(handshake, ticket(200)).kind, Kind::ignored);
  EXPECT_EQ(read(handshake, ticket(0)).kind, Kind::ignored);
  Bytes two = ticket(10);
  const Bytes second = ticket(300);
  two.insert(two.end(), second.begin(), second.end());
  EXPECT_EQ(read(handshake, two).kind, Kind::ignored);
  Bytes with_update = ticket(10);
  with_update.insert(with_update.end(), {24, 0, 0, 1, 1});
  EXPECT_EQ(read(handshake, with_update).kind, Kind::key_update);
}

TEST(ControlRecord, MessagesInPieces) {
  Bytes all = ticket(70);
  all.insert(all.end(), {24, 0, 0, 1, 1});
  for (std::size_t at = 1; at < all.size(); ++at) {
    ControlParser parser(Version::tls13);
    const std::span<const unsigned char> bytes(all);
    EXPECT_EQ(parser.read(handshake, bytes.first(at)).kind, Kind::ignored) << at;
    EXPECT_EQ(parser.read(handshake, bytes.subspan(at)),
              (ControlRecord{.kind = Kind::key_update, .reply_requested = true}))
        << at;
  }
}

TEST(ControlRecord, NothingComesBetweenThePieces) {
  for (const std::uint8_t type : {alert, std::uint8_t{23}}) {
    ControlParser parser(Version::tls13);
    parser.read(handshake, Bytes{4, 0});
    EXPECT_EQ(parser.read(type, Bytes{1, 0}).kind, Kind::unexpected);
  }
}

TEST(ControlRecord, WhateverElseIsUnexpected) {
  EXPECT_EQ(read(handshake, {1, 0, 0, 0}).kind, Kind::unexpected);
  EXPECT_EQ(read(handshake, {13, 0, 0, 0}).kind, Kind::unexpected);
  EXPECT_EQ(read(handshake, {0, 0, 0, 0}, Version::tls12).kind, Kind::unexpected);
  EXPECT_EQ(read(20, {1}).kind, Kind::unexpected);
  EXPECT_EQ(read(24, {1}).kind, Kind::unexpected);
  EXPECT_EQ(read(handshake, {}).kind, Kind::unexpected);
  EXPECT_EQ(read(23, {1}).kind, Kind::data);
  EXPECT_EQ(read(23, {}).kind, Kind::data);
}

TEST(ControlRecord, TooManyMessages) {
  ControlParser parser(Version::tls13, 3);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(parser.read(handshake, ticket(5)).kind, Kind::ignored);
  EXPECT_EQ(parser.read(handshake, ticket(5)).kind, Kind::too_many);
}

TEST(ControlReceive, TheTypeIsInTheControlBuffer) {
  ControlReceive receive;
  msghdr* message = receive.message();
  ASSERT_EQ(message->msg_iovlen, 1U);
  ASSERT_GE(message->msg_controllen, CMSG_SPACE(1));
  // As the kernel writes it.
  cmsghdr* header = CMSG_FIRSTHDR(message);
  header->cmsg_level = SOL_TLS;
  header->cmsg_type = TLS_GET_RECORD_TYPE;
  header->cmsg_len = CMSG_LEN(1);
  *CMSG_DATA(header) = 21;
  std::memcpy(message->msg_iov[0].iov_base, "\x01\x00", 2);
  EXPECT_EQ(receive.type(), 21);
  EXPECT_EQ(receive.bytes(2)[0], 1);
  receive.message()->msg_controllen = 0;
  EXPECT_EQ(receive.type(), std::nullopt) << "nothing is left of the time before";
}

TEST(AlertMessage, IsWhatSendmsgTakes) {
  AlertMessage close;
  const msghdr* message = close.message();
  ASSERT_EQ(message->msg_iov[0].iov_len, 2U);
  EXPECT_EQ(std::memcmp(message->msg_iov[0].iov_base, "\x01\x00", 2), 0);
  const cmsghdr* header = CMSG_FIRSTHDR(message);
  ASSERT_NE(header, nullptr);
  EXPECT_EQ(header->cmsg_level, SOL_TLS);
  EXPECT_EQ(header->cmsg_type, TLS_SET_RECORD_TYPE);
  EXPECT_EQ(header->cmsg_len, CMSG_LEN(1));
  EXPECT_EQ(*CMSG_DATA(header), 21);
  AlertMessage fatal(AlertMessage::Level::fatal, 20);
  EXPECT_EQ(std::memcmp(fatal.message()->msg_iov[0].iov_base, "\x02\x14", 2), 0);
}

// RFC 8446 §4.6.3: update_not_requested, or the two would never come to an end.
TEST(KeyUpdateMessage, IsAHandshakeMessageOfOneByte) {
  KeyUpdateMessage update;
  const msghdr* message = update.message();
  ASSERT_EQ(message->msg_iov[0].iov_len, 5U);
  EXPECT_EQ(std::memcmp(message->msg_iov[0].iov_base, "\x18\0\0\x01\0", 5), 0);
  EXPECT_EQ(*CMSG_DATA(CMSG_FIRSTHDR(message)), 22);
}

}  // namespace
}  // namespace ringside::tls
