#include "access_sink.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ringside::control {
namespace {

using proxy::AccessRecord;

// The record goes into the queue as it is, with its texts behind it and its views pointing to them.
static_assert(std::is_trivially_copyable_v<AccessRecord>);
static_assert(alignof(AccessRecord) <= 8);

constexpr std::array texts = {
    &AccessRecord::client_address, &AccessRecord::method,     &AccessRecord::target,
    &AccessRecord::host,           &AccessRecord::user_agent, &AccessRecord::referer,
    &AccessRecord::request_id,     &AccessRecord::listener,   &AccessRecord::upstream,
    &AccessRecord::server,         &AccessRecord::tls_client, &AccessRecord::grpc_status,
};

std::size_t kept(std::string_view text) {
  return std::min(text.size(), RingAccessSink::text_bytes_max);
}

std::size_t packed_bytes(const AccessRecord& record) {
  std::size_t total = sizeof(AccessRecord);
  for (const auto text : texts)
    total += kept(record.*text);
  return total;
}

void pack(const AccessRecord& record, std::byte* place) {
  auto* copy = new (place) AccessRecord(record);
  char* out = reinterpret_cast<char*>(place) + sizeof(AccessRecord);
  for (const auto text : texts) {
    const std::string_view source = record.*text;
    const std::size_t length = kept(source);
    if (length != 0) std::memcpy(out, source.data(), length);
    if (length < source.size()) std::memcpy(out + length - 3, "...", 3);
    copy->*text = std::string_view(out, length);
    out += length;
  }
}

}  // namespace

void RingAccessSink::record(const AccessRecord& record) {
  std::byte* place = queue_.reserve(packed_bytes(record));
  if (place == nullptr) {
    // One writer, so no read-modify-write is needed.
    dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    wake_up_.signal();
    return;
  }
  pack(record, place);
  queue_.commit();
  if (reader_idle_.load(std::memory_order_relaxed) || queue_.over_half()) wake_up_.signal();
}

const AccessRecord* RingAccessSink::front() {
  const auto bytes = queue_.front();
  return bytes.data() == nullptr
             ? nullptr
             : std::launder(reinterpret_cast<const AccessRecord*>(bytes.data()));
}

std::uint64_t RingAccessSink::take_dropped() {
  const std::uint64_t now = dropped_.load(std::memory_order_relaxed);
  return now - std::exchange(dropped_taken_, now);
}

}  // namespace ringside::control
