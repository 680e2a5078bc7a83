// A group of receive buffers on a kernel that the test plays.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "ringside/ring/buffer_group.h"
#include "ringside/ring/ring.h"

#include "fake_kernel.h"

namespace ringside::ring::test {

inline constexpr std::uint16_t group_id = 3;

class BufferGroupTest : public testing::Test {
 protected:
  BufferGroupTest() : ring_(std::move(*Ring::open(kernel_, {.entries = 8}))) {}

  std::unique_ptr<BufferGroup> create(std::uint32_t count, std::uint32_t bytes = 64) {
    auto group = BufferGroup::create(*ring_, group_id, count, bytes, false);
    EXPECT_TRUE(group.has_value());
    return std::move(*group);
  }
  // The kernel fills its next buffer and completes with it.
  Completion filled(std::string_view text) {
    const io_uring_buf* picked = kernel_.pick_buffer(group_id);
    if (picked == nullptr) return {.result = -ENOBUFS, .flags = 0};
    EXPECT_GE(picked->len, text.size());
    std::memcpy(reinterpret_cast<char*>(picked->addr), text.data(), text.size());
    return {.result = static_cast<std::int32_t>(text.size()),
            .flags = IORING_CQE_F_BUFFER | static_cast<std::uint32_t>(picked->bid)
                                               << IORING_CQE_BUFFER_SHIFT};
  }

  FakeKernel kernel_;
  std::unique_ptr<Ring> ring_;
};

}  // namespace ringside::ring::test
