// What a connection allocates, and what it keeps.
#include <malloc.h>
#include <openssl/crypto.h>

#include <cstdlib>
#include <string>

#include "connection.h"
#include "counting_allocator.h"

namespace ringside::tls::test {
namespace {

// What OpenSSL allocates, told apart from what we do.
thread_local std::uint64_t openssl_count = 0;
void* count_malloc(std::size_t bytes, const char*, int) {
  ++openssl_count;
  return std::malloc(bytes);
}
void* count_realloc(void* at, std::size_t bytes, const char*, int) {
  ++openssl_count;
  return std::realloc(at, bytes);
}
void plain_free(void* at, const char*, int) {
  std::free(at);
}
// OpenSSL takes them only before its first allocation.
const bool counting = CRYPTO_set_mem_functions(&count_malloc, &count_realloc, &plain_free) == 1;

class EngineMemory : public EveryKind {};
INSTANTIATE_TEST_SUITE_P(All, EngineMemory, every_kind(), &name_of);

// OpenSSL 3.0 itself allocates 40 bytes, and frees them, for every packet that it writes to
// (WPACKET in do_ssl3_write and tls13_enc); nothing that grows with a record, and nothing of ours.
TEST_P(EngineMemory, NothingIsAllocatedForARecord) {
  ASSERT_TRUE(counting);
  constexpr std::uint64_t records = 4;
  const std::uint64_t each = version() == Version::tls13 ? 3 + 1 : 2;
  Connection c(contexts, role());
  c.settle();
  const std::string text = pattern(3 * record_plaintext_max + 100);
  const std::string_view pieces[] = {"a head", text, "a tail"};
  std::string out(8 * record_bytes_max, '\0');
  std::string plaintext(8 * record_plaintext_max, '\0');
  for (int i = 0; i < 6; ++i) {
    c.peer.send(text);
    const std::string wire = c.peer.take();
    const ringside::test::AllocationCount allocations;
    const std::uint64_t openssl_before = openssl_count;
    const Engine::Sent sent = c.engine().send(pieces, {out.data(), out.size()});
    const auto half = c.engine().receive(std::string_view(wire).substr(0, 20000),
                                         {plaintext.data(), plaintext.size()});
    const auto rest = c.engine().receive(std::string_view(wire).substr(20000),
                                         {plaintext.data(), plaintext.size()});
    const std::uint64_t all = allocations.count();
    const std::uint64_t theirs = openssl_count - openssl_before;
    EXPECT_EQ(all, theirs) << "round " << i;
    // The first one makes OpenSSL's buffers.
    if (i > 0) {
      EXPECT_LE(theirs, each * records) << "round " << i;
    }
    EXPECT_EQ(half.plaintext + rest.plaintext, text.size());
    c.peer.give({out.data(), sent.produced});
  }
}

TEST_P(EngineMemory, AnIdleConnectionGivesItsBuffersBack) {
  Connection c(contexts, role());
  c.settle();
  c.peer.send("a request");
  c.side.send("an answer");
  c.settle();
  const std::size_t busy = mallinfo2().uordblks;
  c.engine().release_buffers();
  const std::size_t idle = mallinfo2().uordblks;
  // The two buffers of a record each. Under a sanitizer malloc does not tell.
  if (busy != 0) {
    EXPECT_GT(busy - idle, 2 * record_plaintext_max);
  }
  c.peer.send("another request");
  c.side.send("another answer");
  c.settle();
  EXPECT_EQ(c.side.received, "a requestanother request");
  EXPECT_EQ(c.peer.received, "an answeranother answer");
}

// In the middle of a record the buffer has to stay.
TEST_P(EngineMemory, HalfARecordIsNotLost) {
  Connection c(contexts, role());
  c.settle();
  c.peer.send("a request");
  const std::string wire = c.peer.take();
  c.side.give(wire.substr(0, 12));
  c.engine().release_buffers();
  c.side.give(wire.substr(12));
  EXPECT_EQ(c.side.received, "a request");
}

// What stays of many idle connections; printed, since it is a figure of the design.
TEST_P(EngineMemory, BytesOfAnIdleConnection) {
  constexpr std::size_t count = 50;
  std::size_t sizes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Peer peer(contexts.of(other(role())), other(role()));
    const std::size_t before = mallinfo2().uordblks;
    Side side(contexts.of(role()), role());
    settle(side, peer);
    side.send("x");
    settle(side, peer);
    side.engine.release_buffers();
    const std::size_t with = mallinfo2().uordblks;
    side.engine.release_ssl();
    sizes += with - mallinfo2().uordblks;
    if (before == 0) return;
  }
  const std::size_t each = sizes / count;
  RecordProperty("idle_bytes", static_cast<int>(each));
  std::printf("%zu bytes in OpenSSL, %zu in the engine\n", each, sizeof(Engine));
  EXPECT_GT(each, 1000U) << "nothing was measured";
  EXPECT_LE(each + sizeof(Engine), 20U * 1024) << "the limit of the design";
}

}  // namespace
}  // namespace ringside::tls::test
