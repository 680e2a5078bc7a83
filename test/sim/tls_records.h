// Records of the simulated TLS: types and heads as of TLS, no cipher, but bytes that are changed,
// lost, said twice or taken for plain text show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ringside::sim {

// RFC 8446 §5.1.
enum class RecordType : std::uint8_t { alert = 21, handshake = 22, data = 23 };

// Of one direction. Whoever opens a record must have counted as whoever sealed it.
struct RecordKeys {
  std::uint64_t secret = 0;
  std::uint64_t sequence = 0;
  // After a KeyUpdate.
  void update() { *this = {.secret = secret + 1}; }
};

inline constexpr std::size_t record_head_bytes = 5;
inline constexpr std::size_t record_tail_bytes = 4;  // a checksum
inline constexpr std::size_t record_payload_max = 16'384;
inline constexpr std::size_t record_overhead = record_head_bytes + record_tail_bytes;

void append_record(std::string& out, RecordType type, std::string_view payload, RecordKeys& keys);
// The payload is in its place, behind the head. Bytes of the whole record.
std::size_t seal_record(char* record, RecordType type, std::size_t payload_bytes, RecordKeys& keys);

// Puts one record after the other together.
class RecordReader {
 public:
  // Takes bytes until a record is whole; how many.
  std::size_t feed(std::string_view bytes);
  bool whole() const { return !bytes_.empty() && missing() == 0; }
  // Bytes that the record which has begun lacks at least; 0: none has begun, or it is whole.
  std::size_t missing() const;

  struct Record {
    RecordType type;
    std::string payload;
  };
  // When it is whole. Nothing: it is not what the peer made.
  std::optional<Record> take(RecordKeys& keys);
  // Likewise, for what cannot be opened and is to be passed over.
  RecordType type() const { return static_cast<RecordType>(bytes_[0]); }
  void drop() { bytes_.clear(); }

 private:
  std::size_t payload_bytes() const;
  std::string bytes_;
};

}  // namespace ringside::sim
