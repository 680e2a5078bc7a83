#include <openssl/err.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "ringside/tls/engine.h"

#include "openssl.h"

namespace ringside::tls {

namespace {

// Records that are cut to the room should still be worth their overhead.
constexpr std::size_t small_record_room = 1024;

// A place in a list of pieces.
class Cursor {
 public:
  explicit Cursor(std::span<const std::string_view> pieces) : pieces_(pieces) {
    for (std::string_view piece : pieces)
      left_ += piece.size();
  }
  std::size_t left() const { return left_; }

  // The next `bytes` bytes in one piece: where they are, or gathered in `scratch`.
  std::string_view next(std::size_t bytes, std::span<char> scratch) {
    left_ -= bytes;
    skip_empty();
    std::string_view front = pieces_.front().substr(offset_);
    if (front.size() >= bytes) {
      offset_ += bytes;
      return front.substr(0, bytes);
    }
    for (std::size_t done = 0; done < bytes;) {
      skip_empty();
      front = pieces_.front().substr(offset_, bytes - done);
      std::memcpy(scratch.data() + done, front.data(), front.size());
      done += front.size();
      offset_ += front.size();
    }
    return {scratch.data(), bytes};
  }

 private:
  void skip_empty() {
    while (offset_ == pieces_.front().size()) {
      pieces_ = pieces_.subspan(1);
      offset_ = 0;
    }
  }
  std::span<const std::string_view> pieces_;
  std::size_t offset_ = 0;
  std::size_t left_ = 0;
};

}  // namespace

std::size_t Engine::record_size(std::size_t left, std::size_t room, bool first) const {
  const std::size_t whole = std::min(left, fragment_max_);
  if (room >= whole + record_overhead_max) return whole;
  if (room >= small_record_room) return room - record_overhead_max;
  return first ? whole : 0;
}

Engine::Sent Engine::send(std::span<const std::string_view> pieces, std::span<char> out) {
  assert(can_send());
  Sent sent;
  sent.produced = store_.take(out);
  if (!store_.empty() || out.empty()) return sent;
  output_ = out;
  output_used_ = sent.produced;
  Cursor cursor(pieces);
  const std::size_t all = cursor.left();
  while (cursor.left() != 0 && store_.empty()) {
    const std::size_t bytes =
        record_size(cursor.left(), out.size() - output_used_, output_used_ == 0);
    if (bytes == 0) break;
    const std::size_t before = cursor.left();
    if (!encrypt(cursor.next(bytes, scratch_->plaintext))) {
      sent.taken = all - before;
      break;
    }
    sent.taken = all - cursor.left();
  }
  sent.produced = output_used_;
  output_ = {};
  output_used_ = 0;
  return sent;
}

bool Engine::encrypt(std::string_view plaintext) {
  ERR_clear_error();
  // RFC 8446 §5.5. The KeyUpdate goes out before the record.
  if (tx_.records >= records_a_key_ && established() && SSL_version(ssl_.get()) == TLS1_3_VERSION)
    SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
  std::size_t written = 0;
  const auto seal = handshaking() ? &SSL_write_early_data : &SSL_write_ex;
  const int result = seal(ssl_.get(), plaintext.data(), plaintext.size(), &written);
  if (result == 1) return true;
  classify(result);
  // Not even a want: output is never refused, and no handshake is waited for.
  if (state_ != State::failed) fail(Failure::Cause::internal);
  return false;
}

void Engine::close() {
  if (!can_send() || handshaking()) return;
  close_sent_ = true;
  ERR_clear_error();
  // 0 says that the peer's is still to come.
  if (const int result = SSL_shutdown(ssl_.get()); result < 0) classify(result);
}

}  // namespace ringside::tls
