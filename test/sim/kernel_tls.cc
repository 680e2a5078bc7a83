#include "kernel_tls.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace ringside::sim {

int KernelTls::install(bool tx, const RecordKeys& keys) {
  std::optional<RecordKeys>& direction = tx ? tx_ : rx_;
  if (direction) return -EBUSY;
  direction = keys;
  return 0;
}

int KernelTls::write(Stream& stream, RecordType type, const char* data, std::size_t bytes) {
  if (stream.room() == 0 && bytes != 0) {
    stream.want_room();
    return -EAGAIN;
  }
  const std::size_t some = std::min(bytes, record_payload_max);
  std::string record;
  RecordKeys keys = *tx_;
  append_record(record, type, {data, some}, keys);
  const int result = stream.write_whole(record);
  if (result < 0) return result;
  tx_ = keys;
  return static_cast<int>(some);
}

// 1: there is a record. Never more is read of the stream than belongs to it.
int KernelTls::load(Stream& stream) {
  while (!record_) {
    if (bad_) return -EBADMSG;
    while (!reader_.whole()) {
      char bytes[4096];
      const std::size_t missing = reader_.missing() != 0 ? reader_.missing() : record_head_bytes;
      const int result = stream.read(bytes, std::min(missing, sizeof bytes));
      if (result <= 0) return result;
      reader_.feed({bytes, static_cast<std::size_t>(result)});
    }
    record_ = reader_.take(*rx_);
    given_ = 0;
    bad_ = !record_;
    if (record_ && record_->type == RecordType::data && record_->payload.empty()) record_.reset();
  }
  return 1;
}

int KernelTls::give(char* out, std::size_t room, bool peek) {
  const std::size_t some = std::min(room, record_->payload.size() - given_);
  std::copy_n(record_->payload.data() + given_, some, out);
  if (peek) return static_cast<int>(some);
  given_ += some;
  if (given_ == record_->payload.size()) record_.reset();
  return static_cast<int>(some);
}

int KernelTls::read(Stream& stream, char* out, std::size_t room, bool peek) {
  if (error_ != 0) return std::exchange(error_, 0);
  const int loaded = load(stream);
  if (loaded <= 0) return loaded;
  if (record_->type != RecordType::data) return -EIO;
  return give(out, room, peek);
}

int KernelTls::read_any(Stream& stream, char* out, std::size_t room, RecordType* type) {
  if (error_ != 0) return std::exchange(error_, 0);
  const int loaded = load(stream);
  if (loaded <= 0) return loaded;
  *type = record_->type;
  return give(out, room, false);
}

bool KernelTls::readable(Stream& stream) {
  if (error_ != 0) return true;
  const int loaded = load(stream);
  if (loaded < 0 && loaded != -EAGAIN && !bad_) error_ = loaded;
  return loaded != -EAGAIN;
}

}  // namespace ringside::sim
