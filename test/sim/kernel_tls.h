// Kernel TLS of a simulated socket: once it has the keys, the kernel makes and opens the records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "stream.h"
#include "tls_records.h"

namespace ringside::sim {

// From setsockopt(TCP_ULP, "tls") on. Results are those of system calls on such a socket in Linux
// 6.18 (net/tls/tls_sw.c).
class KernelTls {
 public:
  int install(bool tx, const RecordKeys& keys);
  bool sends() const { return tx_.has_value(); }
  bool opens() const { return rx_.has_value(); }

  // Takes plaintext where the socket has room, and then a whole record of it.
  int write(Stream& stream, RecordType type, const char* data, std::size_t bytes);
  // Data. -EIO: the next record is of another type and stays where it is; -EBADMSG: it is none.
  int read(Stream& stream, char* out, std::size_t room, bool peek);
  // A record of any type, or its beginning: for who can tell the type by `type`.
  int read_any(Stream& stream, char* out, std::size_t room, RecordType* type);
  // Whether a read would find something: data, another record, an error or the end.
  bool readable(Stream& stream);
  // A read would give data.
  bool has_data(Stream& stream) {
    return readable(stream) && record_ && record_->type == RecordType::data;
  }

 private:
  int load(Stream& stream);
  int give(char* out, std::size_t room, bool peek);

  std::optional<RecordKeys> tx_, rx_;
  RecordReader reader_;
  std::optional<RecordReader::Record> record_;
  std::size_t given_ = 0;
  int error_ = 0;     // found by who only looked
  bool bad_ = false;  // for good
};

}  // namespace ringside::sim
