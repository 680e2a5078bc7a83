#include "tls_records.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ringside::sim {

namespace {

// What takes the cipher's place: plain text that goes out by mistake is no payload, and the other
// way round.
char mask_of(const RecordKeys& keys) {
  return static_cast<char>(0x80 | (keys.secret & 0x7f));
}

std::uint32_t checksum(const RecordKeys& keys, RecordType type, std::string_view payload) {
  constexpr std::uint64_t prime = 0x100000001b3ULL;
  std::uint64_t sum = (keys.secret * prime ^ keys.sequence) * prime ^ static_cast<unsigned>(type);
  const auto mix = [&sum](std::uint64_t word) {
    sum = (sum ^ word) * prime;
    sum ^= sum >> 29;
  };
  std::size_t at = 0;
  for (; at + 8 <= payload.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, payload.data() + at, 8);
    mix(word);
  }
  for (; at < payload.size(); ++at)
    mix(static_cast<unsigned char>(payload[at]));
  mix(payload.size());
  return static_cast<std::uint32_t>(sum ^ sum >> 32);
}

void mask(char* bytes, std::size_t count, char with) {
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<char>(bytes[i] ^ with);
}

}  // namespace

std::size_t seal_record(char* record, RecordType type, std::size_t bytes, RecordKeys& keys) {
  char* payload = record + record_head_bytes;
  const std::uint32_t sum = checksum(keys, type, {payload, bytes});
  const std::size_t length = bytes + record_tail_bytes;
  const char head[] = {static_cast<char>(type), 3, 3, static_cast<char>(length >> 8),
                       static_cast<char>(length)};
  std::memcpy(record, head, sizeof head);
  mask(payload, bytes, mask_of(keys));
  std::memcpy(payload + bytes, &sum, sizeof sum);
  ++keys.sequence;
  return bytes + record_overhead;
}

void append_record(std::string& out, RecordType type, std::string_view payload, RecordKeys& keys) {
  const std::size_t at = out.size();
  out.resize(at + payload.size() + record_overhead);
  std::copy(payload.begin(), payload.end(), out.begin() + static_cast<std::ptrdiff_t>(at + 5));
  seal_record(out.data() + at, type, payload.size(), keys);
}

// With the checksum; more than a record may have where the head is none.
std::size_t RecordReader::payload_bytes() const {
  const auto at = [this](std::size_t i) { return static_cast<unsigned char>(bytes_[i]); };
  return static_cast<std::size_t>(at(3)) << 8 | at(4);
}

std::size_t RecordReader::missing() const {
  if (bytes_.empty()) return 0;
  if (bytes_.size() < record_head_bytes) return record_head_bytes - bytes_.size();
  const std::size_t payload = payload_bytes();
  // Nobody waits for what cannot come: it is as good as whole.
  if (payload > record_payload_max + record_tail_bytes || payload < record_tail_bytes) return 0;
  return record_head_bytes + payload - bytes_.size();
}

std::size_t RecordReader::feed(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && !whole()) {
    const std::size_t want = bytes_.empty() ? record_head_bytes : missing();
    const std::size_t some = std::min(want, bytes.size() - taken);
    bytes_.append(bytes.substr(taken, some));
    taken += some;
  }
  return taken;
}

std::optional<RecordReader::Record> RecordReader::take(RecordKeys& keys) {
  std::string bytes = std::exchange(bytes_, {});
  if (bytes.size() < record_overhead || bytes[1] != 3 || bytes[2] != 3) return std::nullopt;
  Record out{.type = static_cast<RecordType>(bytes[0]), .payload = {}};
  std::uint32_t sum = 0;
  std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
  bytes.resize(bytes.size() - record_tail_bytes);
  bytes.erase(0, record_head_bytes);
  mask(bytes.data(), bytes.size(), mask_of(keys));
  if (checksum(keys, out.type, bytes) != sum) return std::nullopt;
  ++keys.sequence;
  out.payload = std::move(bytes);
  return out;
}

}  // namespace ringside::sim
