#include "ringside/proxy/end_reason.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace ringside::proxy {
namespace {

using base::ErrorCode;
using base::Origin;

std::string text(const EndReason& reason) {
  char out[64];
  std::size_t bytes = write(reason, out);
  EXPECT_LE(bytes, sizeof out);
  return {out, bytes};
}

TEST(EndReason, every_word_is_its_own) {
  std::set<std::string_view> stages;
  for (int i = 0; i <= int(Stage::done); ++i)
    stages.insert(to_string(Stage(i)));
  EXPECT_EQ(stages.size(), std::size_t(Stage::done) + 1);
  EXPECT_FALSE(stages.contains("unknown"));
  std::set<std::string_view> causes;
  for (int i = 0; i <= int(Cause::internal); ++i)
    causes.insert(to_string(Cause(i)));
  EXPECT_EQ(causes.size(), std::size_t(Cause::internal) + 1);
  EXPECT_FALSE(causes.contains("unknown"));
}

TEST(EndReason, reads_as_who_stage_cause) {
  EXPECT_EQ(text({Origin::client, Stage::response_body, Cause::reset}),
            "client/response_body/reset");
  EXPECT_EQ(text({Origin::upstream, Stage::connect, Cause::refused}), "upstream/connect/refused");
  EXPECT_EQ(text({Origin::self, Stage::queue, Cause::limit}), "ringside/queue/limit");
  EXPECT_EQ(text({Origin::self, Stage::done, Cause::complete}), "complete");
}

TEST(EndReason, the_longest_fits) {
  for (int who = 0; who < 3; ++who)
    for (int stage = 0; stage <= int(Stage::done); ++stage)
      for (int cause = 0; cause <= int(Cause::internal); ++cause)
        EXPECT_LE(text({Origin(who), Stage(stage), Cause(cause)}).size(), 64U);
}

TEST(EndReason, errors_have_causes) {
  EXPECT_EQ(cause_of(ErrorCode::none), Cause::complete);
  EXPECT_EQ(cause_of(ErrorCode::closed), Cause::closed);
  EXPECT_EQ(cause_of(ErrorCode::reset), Cause::reset);
  EXPECT_EQ(cause_of(ErrorCode::refused), Cause::refused);
  EXPECT_EQ(cause_of(ErrorCode::timed_out), Cause::timed_out);
  EXPECT_EQ(cause_of(ErrorCode::queue_full), Cause::limit);
  EXPECT_EQ(cause_of(ErrorCode::pool_exhausted), Cause::limit);
  EXPECT_EQ(cause_of(ErrorCode::no_descriptors), Cause::no_resources);
  EXPECT_EQ(cause_of(ErrorCode::no_address), Cause::no_address);
  EXPECT_EQ(cause_of(ErrorCode::bad_message), Cause::bad_message);
  for (int i = 1; i <= int(ErrorCode::invalid_argument); ++i)
    EXPECT_NE(cause_of(ErrorCode(i)), Cause::complete) << "an error is no success";
}

}  // namespace
}  // namespace ringside::proxy
