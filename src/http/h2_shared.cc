// What HTTP/2 connections of a ring share: callbacks, options and memory for nghttp2.
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "ringside/http/h2_endpoint.h"

#include "h2_callbacks.h"
#include "h2_parts.h"
#include "h2_requester_callbacks.h"

namespace ringside::http {

namespace {

H2Memory& memory_of(void* user) {
  return *static_cast<H2Memory*>(user);
}
void* take_memory(std::size_t bytes, void* user) {
  return memory_of(user).allocate(bytes);
}
void give_back_memory(void* block, void* user) {
  memory_of(user).release(block);
}
void* take_zeroed(std::size_t count, std::size_t each, void* user) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, each, &bytes)) return nullptr;
  void* block = memory_of(user).allocate(bytes);
  if (block != nullptr) std::fill_n(static_cast<char*>(block), bytes, '\0');
  return block;
}
void* resize_memory(void* block, std::size_t bytes, void* user) {
  return memory_of(user).reallocate(block, bytes);
}

}  // namespace

nghttp2_mem detail::memory_from(H2Memory& memory) {
  return {&memory, take_memory, give_back_memory, take_zeroed, resize_memory};
}

H2Shared::H2Shared() : parts_(std::make_unique<detail::H2Parts>()) {
  if (nghttp2_session_callbacks_new(&parts_->callbacks) == 0)
    detail::H2Callbacks::set(parts_->callbacks);
  if (nghttp2_session_callbacks_new(&parts_->requester_callbacks) == 0)
    detail::H2RequesterCallbacks::set(parts_->requester_callbacks);
  if (nghttp2_option_new(&parts_->option) != 0) return;
  nghttp2_option* option = parts_->option;
  nghttp2_option_set_no_auto_window_update(option, 1);
  // What a message may say is H2HeadReader's to judge: for all protocols the same.
  nghttp2_option_set_no_http_messaging(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  // It would count by a clock of its own, and what completes would make up for nothing.
  nghttp2_option_set_stream_reset_rate_limit(option, std::uint64_t{1} << 40,
                                             std::uint64_t{1} << 40);
  nghttp2_option_set_builtin_recv_extension_type(option, NGHTTP2_PRIORITY_UPDATE);
}

H2Shared::~H2Shared() {
  nghttp2_session_callbacks_del(parts_->callbacks);
  nghttp2_session_callbacks_del(parts_->requester_callbacks);
  nghttp2_option_del(parts_->option);
}

}  // namespace ringside::http
