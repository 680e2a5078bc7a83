#include "ringside/base/error.h"

#include <cerrno>

namespace ringside::base {

std::string_view describe(ErrorCode code) {
  switch (code) {
    case ErrorCode::none:
      return "none";
    case ErrorCode::system:
      return "system error";
    case ErrorCode::closed:
      return "closed";
    case ErrorCode::reset:
      return "reset";
    case ErrorCode::refused:
      return "refused";
    case ErrorCode::unreachable:
      return "unreachable";
    case ErrorCode::timed_out:
      return "timed out";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::no_memory:
      return "out of memory";
    case ErrorCode::no_buffers:
      return "out of buffers";
    case ErrorCode::no_descriptors:
      return "out of descriptors";
    case ErrorCode::pool_exhausted:
      return "limit reached";
    case ErrorCode::queue_full:
      return "queue full";
    case ErrorCode::no_address:
      return "no address";
    case ErrorCode::bad_message:
      return "bad message";
    case ErrorCode::too_large:
      return "too large";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::insecure:
      return "TLS failed";
    case ErrorCode::invalid_argument:
      return "invalid argument";
  }
  return "unknown";
}

namespace {

ErrorCode code_of(int sys_errno) {
  switch (sys_errno) {
    case 0:
      return ErrorCode::none;
    case ECONNRESET:
    case EPIPE:
    case ECONNABORTED:
      return ErrorCode::reset;
    case ECONNREFUSED:
    case ENOENT:
      return ErrorCode::refused;  // ENOENT: a unix socket that is not there
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
      return ErrorCode::unreachable;
    case ETIMEDOUT:
    case ETIME:
      return ErrorCode::timed_out;
    case ECANCELED:
      return ErrorCode::cancelled;
    case ENOMEM:
      return ErrorCode::no_memory;
    case ENOBUFS:
      return ErrorCode::no_buffers;
    case EMFILE:
    case ENFILE:
      return ErrorCode::no_descriptors;
    case EINVAL:
      return ErrorCode::invalid_argument;
    case EOPNOTSUPP:
    case ENOSYS:
      return ErrorCode::unsupported;
    default:
      return ErrorCode::system;
  }
}

}  // namespace

Error from_errno(int sys_errno, Origin origin, Retry retry) {
  return Error{code_of(sys_errno), origin, retry, sys_errno};
}

}  // namespace ringside::base
