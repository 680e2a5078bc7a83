// The error type that every folder but `config` and `app` returns.
#pragma once

#include <cstdint>
#include <expected>
#include <string_view>

namespace ringside::base {

// Who caused an error. It decides the status that the client sees and whose counter grows.
enum class Origin : std::uint8_t { client, upstream, self };

// Whether the request that met the error may be sent again.
enum class Retry : std::uint8_t {
  no,
  yes,          // nothing reached a server
  reused_only,  // only if the connection had served a request before (RFC 9112 §9.3.1)
};

enum class ErrorCode : std::uint16_t {
  none,
  system,            // `sys_errno` says what
  closed,            // the peer ended the stream in an orderly way
  reset,             // the peer reset the connection
  refused,           // connect refused
  unreachable,       // no route, network or host down
  timed_out,         // a timer of ours ended it
  cancelled,         // ended by us on purpose
  no_memory,         // a slab, an arena or the kernel ran out
  no_buffers,        // the buffer group ran dry
  no_descriptors,    // EMFILE or ENFILE
  pool_exhausted,    // a configured limit was met
  queue_full,        // no place to wait
  no_address,        // the name of a server has no address yet
  bad_message,       // the peer broke its protocol
  too_large,         // the peer went past a limit of ours
  unsupported,       // the kernel, or we, cannot do this
  insecure,          // TLS failed: an alert, a certificate, a stream cut short
  invalid_argument,  // a caller or a file asked for nonsense
};

// Trivially copyable; 8 bytes. Never owns anything.
struct Error {
  ErrorCode code = ErrorCode::none;
  Origin origin = Origin::self;
  Retry retry = Retry::no;
  std::int32_t sys_errno = 0;

  friend bool operator==(const Error&, const Error&) = default;
};

template <typename T>
using Result = std::expected<T, Error>;

// A short word for logs: "reset", "timed out", ...
std::string_view describe(ErrorCode code);

// Maps an errno to a code: ECONNRESET and EPIPE to reset, ECONNREFUSED to refused, and so on.
Error from_errno(int sys_errno, Origin origin = Origin::self, Retry retry = Retry::no);

}  // namespace ringside::base
