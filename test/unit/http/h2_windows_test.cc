// Windows that open for uploads over long paths.
#include "h2_windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "h2_peer.h"

namespace ringside::http {
namespace {

using namespace test;
using detail::H2Windows;

constexpr std::uint32_t first = 65'536;
constexpr std::uint8_t window_update = 8;
constexpr std::uint8_t ping = 6;

TEST(H2Windows, WhatAWindowHoldsUpIsGivenTwiceAsMuch) {
  H2Windows windows(first, 4 * first);
  EXPECT_FALSE(windows.received(first - 1)) << "few uploads are longer";
  EXPECT_TRUE(windows.received(1));
  EXPECT_FALSE(windows.received(first)) << "one PING at a time";
  EXPECT_EQ(windows.answered(), 2 * first);
  EXPECT_EQ(windows.window(), first) << "until it is said to be so";
  windows.set(2 * first);
  EXPECT_FALSE(windows.received(2 * first - 1)) << "what the wider one brings comes first";
  EXPECT_TRUE(windows.received(1));
  windows.received(first);
  EXPECT_EQ(windows.answered(), 4 * first);
  windows.set(4 * first);
  EXPECT_FALSE(windows.received(std::size_t{1} << 30)) << "that is the most";
}

TEST(H2Windows, WhoIsNotHeldUpIsAskedLessAndLess) {
  H2Windows windows(first, 4 * first);
  std::size_t last = 0;
  for (int i = 0; i < 12; ++i) {
    std::size_t bytes = 1;
    for (; !windows.received(1024); ++bytes) {
    }
    EXPECT_GE(bytes, last);
    EXPECT_LE(bytes, 64 * first / 1024);
    last = bytes;
    windows.received(first / 2 - 1);
    EXPECT_EQ(windows.answered(), first);
  }
  EXPECT_EQ(last, 64 * first / 1024);
}

TEST(H2Windows, AnAnswerToNothingSaysNothing) {
  H2Windows windows(first, 4 * first);
  windows.received(first - 1);
  EXPECT_EQ(windows.answered(), first);
}

// A client that uploads without an end.
struct Uploads : testing::Test {
  static constexpr http::H2Limits limits{.stream_window_bytes = first,
                                         .connection_window_bytes = 2 * first,
                                         .window_bytes_max = 16 * first};
  Uploads() {
    peer.shared.set_window_bytes(budget);
    EXPECT_TRUE(peer.greet());
    EXPECT_TRUE(peer.receive(h2_headers(1, h2_request("POST", "/"), false)));
    look();
  }
  void look() {
    for (const H2Frame& frame : peer.take_frames()) {
      if (frame.type == window_update) (frame.stream == 0 ? connection : stream) += frame.number(0);
      if (frame.type == ping && frame.flags == 0) asked = frame.payload;
    }
  }
  void send(std::uint32_t bytes) {
    for (; bytes != 0; bytes -= std::min(bytes, 16'384U)) {
      const std::string piece(std::min(bytes, 16'384U), 'x');
      ASSERT_TRUE(peer.receive(h2_data(1, piece, false)));
      sent += piece.size();
      look();
    }
  }
  void acknowledge(const std::string& payload) {
    if (payload.empty()) return;
    ASSERT_TRUE(peer.receive(h2_frame(ping, 1, 0, payload)));
  }
  // As much as the stream's window lets it in each round trip.
  void upload(int round_trips) {
    for (int i = 0; i < round_trips; ++i) {
      const std::string answer = std::exchange(asked, {});
      send(static_cast<std::uint32_t>(std::min(first + stream, 65'535 + connection) - sent));
      acknowledge(answer);
      look();
    }
  }
  // What may be on its way.
  std::uint64_t open() const { return first + stream - sent; }

  static constexpr std::size_t budget = 6 * first;
  H2Recorder peer{limits};
  std::uint64_t stream = 0;  // what was given
  std::uint64_t connection = 0;
  std::uint64_t sent = 0;
  std::string asked;
};

TEST_F(Uploads, WindowsOpenAsFarAsTheBudgetGoes) {
  upload(40);
  // Twice what the connection begins with and the budget, less what is consumed and not yet said.
  EXPECT_LE(open(), 8 * first);
  EXPECT_GE(open(), 4 * first);
  EXPECT_EQ(peer.connection.window_bytes(), 8 * first);
}

TEST_F(Uploads, WithTheLastStreamTheWindowsAreGivenBack) {
  upload(40);
  ASSERT_TRUE(peer.receive(h2_reset(1, 8)));
  EXPECT_EQ(peer.connection.window_bytes(), 2 * first);
  ASSERT_TRUE(peer.receive(h2_headers(3, h2_request("POST", "/"), false)));
  look();
  EXPECT_EQ(peer.connection.window_bytes(), 2 * first);
}

TEST_F(Uploads, AShortPathLeavesThemAsTheyAre) {
  for (int i = 0; i < 100; ++i) {
    send(16'384);
    acknowledge(std::exchange(asked, {}));
    look();
  }
  EXPECT_EQ(peer.connection.window_bytes(), 2 * first);
  EXPECT_LE(open(), first);
}

TEST_F(Uploads, AServerThatDoesNotReadGetsNoMore) {
  peer.consume = false;
  const std::uint64_t before = stream;
  send(first);
  acknowledge(asked);
  look();
  EXPECT_EQ(stream, before);
  EXPECT_EQ(open(), 0U);
}

}  // namespace
}  // namespace ringside::http
