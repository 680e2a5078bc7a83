// Opening a ring: flags, the floor, errors and what is said about them.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "ringside/ring/ring.h"

#include "fake_kernel.h"
#include "owner.h"

namespace ringside::ring::test {
namespace {

TEST(RingSetUp, asks_for_deferred_work_and_a_sized_completion_queue) {
  FakeKernel kernel;
  auto ring = Ring::open(kernel, {.entries = 100, .completion_entries = 50});
  ASSERT_TRUE(ring.has_value());
  constexpr unsigned wanted =
      IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE;
  EXPECT_EQ(kernel.last_params.flags & wanted, wanted);
  // Rounded up, and never less than two completions an entry.
  EXPECT_EQ(kernel.last_params.cq_entries, 256U);
  EXPECT_TRUE((*ring)->features().defer_taskrun);
  EXPECT_TRUE((*ring)->features().single_issuer);
  EXPECT_FALSE((*ring)->features().coop_taskrun);
}

TEST(RingSetUp, falls_back_to_cooperative_and_to_plain) {
  FakeKernel kernel;
  kernel.setup_errors = {{IORING_SETUP_DEFER_TASKRUN, -EINVAL}};
  auto ring = Ring::open(kernel, {});
  ASSERT_TRUE(ring.has_value());
  EXPECT_FALSE((*ring)->features().defer_taskrun);
  EXPECT_TRUE((*ring)->features().coop_taskrun);
  ring->reset();
  kernel.setup_errors[IORING_SETUP_COOP_TASKRUN] = -EINVAL;
  ring = Ring::open(kernel, {});
  ASSERT_TRUE(ring.has_value());
  EXPECT_FALSE((*ring)->features().coop_taskrun);
  EXPECT_EQ(kernel.setups, 2U + 3U);
}

TEST(RingSetUp, other_errors_are_not_tried_again) {
  struct {
    int error;
    base::ErrorCode code;
    const char* said;
  } cases[] = {
      {ENOSYS, base::ErrorCode::unsupported, "seccomp"},
      {EPERM, base::ErrorCode::unsupported, "kernel.io_uring_disabled"},
      {ENOMEM, base::ErrorCode::no_memory, "RLIMIT_MEMLOCK"},
      {EMFILE, base::ErrorCode::no_descriptors, "RLIMIT_NOFILE"},
  };
  for (auto [error, code, said] : cases) {
    FakeKernel kernel;
    kernel.setup_error = -error;
    auto ring = Ring::open(kernel, {});
    ASSERT_FALSE(ring.has_value());
    EXPECT_EQ(ring.error().code, code);
    EXPECT_EQ(ring.error().sys_errno, error);
    EXPECT_NE(Ring::explain(ring.error()).find(said), std::string::npos)
        << Ring::explain(ring.error());
    EXPECT_EQ(kernel.setups, 1U);
  }
}

TEST(RingSetUp, explains_what_it_does_not_know) {
  std::string text = Ring::explain(base::from_errno(EIO));
  EXPECT_NE(text.find("Input/output error"), std::string::npos) << text;
}

void expect_below_floor(FakeKernel& kernel) {
  auto ring = Ring::open(kernel, {});
  ASSERT_FALSE(ring.has_value());
  EXPECT_EQ(ring.error().code, base::ErrorCode::invalid_argument);
  EXPECT_NE(Ring::explain(ring.error()).find("6.1"), std::string::npos);
}

TEST(RingSetUp, refuses_kernels_below_the_floor) {
  {
    FakeKernel kernel;
    kernel.feature_bits &= ~static_cast<unsigned>(IORING_FEAT_NODROP);
    expect_below_floor(kernel);
  }
  {
    FakeKernel kernel;
    kernel.features.multishot_receive = false;
    expect_below_floor(kernel);
  }
  {
    FakeKernel kernel;
    kernel.last_operation = IORING_OP_SEND_ZC - 1;
    expect_below_floor(kernel);
  }
  {
    FakeKernel kernel;
    kernel.last_operation = IORING_OP_SOCKET - 1;
    expect_below_floor(kernel);
  }
}

// Too little memory for the trials is not an old kernel.
TEST(RingSetUp, a_trial_that_could_not_be_made_is_no_missing_feature) {
  FakeKernel kernel;
  kernel.features = {};
  kernel.features.trial_errno = ENOMEM;
  auto ring = Ring::open(kernel, {});
  ASSERT_FALSE(ring.has_value());
  EXPECT_EQ(ring.error().code, base::ErrorCode::no_memory);
}

TEST(RingSetUp, believes_in_bundles_only_when_bit_and_trial_agree) {
  FakeKernel kernel;
  kernel.features.bundles = true;
  auto ring = Ring::open(kernel, {});
  ASSERT_TRUE(ring.has_value());
  EXPECT_FALSE((*ring)->features().bundles);
  ring->reset();
  kernel.feature_bits |= 1U << 14;  // IORING_FEAT_RECVSEND_BUNDLE
  ring = Ring::open(kernel, {});
  ASSERT_TRUE(ring.has_value());
  EXPECT_TRUE((*ring)->features().bundles);
}

TEST(RingSetUp, sums_up_its_locked_memory) {
  // 64 KiB of entries, 68 KiB and a bit of queues.
  EXPECT_EQ(Ring::locked_bytes({.entries = 1024, .completion_entries = 4096}, 0),
            (64U + 72U) * 1024);
  EXPECT_EQ(Ring::locked_bytes({.entries = 1024, .completion_entries = 4096}, 1024),
            (64U + 72U + 16U) * 1024);
  EXPECT_EQ(Ring::locked_bytes({.entries = 8, .completion_entries = 8}, 1), 3U * 4096);
}

TEST(RingSetUp, describes_features_in_a_line) {
  Features features;
  features.kernel = "6.18";
  features.defer_taskrun = true;
  features.multishot_accept = true;
  features.multishot_receive = true;
  features.send_zero_copy = true;
  EXPECT_EQ(describe(features),
            "ring: 6.18 defer=yes multishot=yes bundles=no incremental=no zc=yes msg=no");
  features.multishot_accept = false;
  features.kernel.clear();
  EXPECT_EQ(describe(features),
            "ring: unknown defer=yes multishot=no bundles=no incremental=no zc=yes msg=no");
}

TEST(RingSetUp, the_real_kernel_tells_what_it_can) {
  auto ring = Ring::open(real_kernel(), {.entries = 16, .completion_entries = 32});
  ASSERT_TRUE(ring.has_value()) << Ring::explain(ring.error());
  const Features& features = (*ring)->features();
  EXPECT_FALSE(features.kernel.empty());
  EXPECT_TRUE(features.multishot_receive);
  EXPECT_TRUE(features.send_zero_copy);
  auto again = Ring::open(real_kernel(), {.entries = 16, .completion_entries = 32});
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(describe((*again)->features()), describe(features));
}

}  // namespace
}  // namespace ringside::ring::test
