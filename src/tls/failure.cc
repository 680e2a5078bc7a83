#include "ringside/tls/failure.h"

#include <openssl/ssl.h>

namespace ringside::tls {

std::string_view describe_alert(AlertDescription alert) {
  return SSL_alert_desc_string_long(alert);
}

namespace {

std::string_view describe_cause(const Failure& failure) {
  switch (failure.cause) {
    case Failure::Cause::none:
      return "no failure";
    case Failure::Cause::peer_alert:
      return "the peer gave up";
    case Failure::Cause::plain_http:
      return "an HTTP request without TLS";
    case Failure::Cause::truncated:
      return "the peer ended the stream without close_notify";
    case Failure::Cause::too_many_messages:
      return "the peer sent too many KeyUpdates or requests for renegotiation";
    case Failure::Cause::write_after_handoff:
      return "the peer asked for new keys that the kernel cannot take";
    case Failure::Cause::unknown_key:
      return "the peer went on to a new key, which the kernel cannot take";
    case Failure::Cause::protocol:
    case Failure::Cause::internal:
      break;
  }
  if (failure.reason != nullptr) return failure.reason;
  return failure.cause == Failure::Cause::protocol ? "protocol error" : "internal error";
}

}  // namespace

std::string describe(const Failure& failure) {
  std::string text = failure.during_handshake ? "handshake: " : "";
  text += describe_cause(failure);
  if (!failure.has_alert && !failure.alert_to_send) return text;
  if (failure.alert_to_send)
    text += " (alert to be sent: ";
  else
    text += failure.cause == Failure::Cause::peer_alert ? " (alert received: " : " (alert sent: ";
  text += describe_alert(failure.alert);
  return text += ")";
}

}  // namespace ringside::tls
