// What one exchange leaves behind for the access log.
#pragma once

#include <cstdint>
#include <string_view>

#include "ringside/http/message.h"
#include "ringside/proxy/end_reason.h"

namespace ringside::proxy {

// Views are valid only during the call of AccessSink::record.
struct AccessRecord {
  static constexpr std::uint64_t never = ~std::uint64_t{0};

  std::uint64_t start_realtime_ns = 0;  // first byte of the request, since 1970
  // Nanoseconds since the start; `never` when it did not happen.
  std::uint64_t connected_ns = never;   // a server connection was at hand (reused or new)
  std::uint64_t first_byte_ns = never;  // the response head had arrived (or was made here)
  std::uint64_t total_ns = 0;
  std::uint64_t request_bytes = 0;   // body bytes received from the client
  std::uint64_t response_bytes = 0;  // all bytes sent to the client
  std::uint64_t response_body_bytes = 0;
  std::uint64_t spliced_bytes = 0;    // body bytes, both ways, that passed through a pipe
  std::uint64_t zero_copy_bytes = 0;  // that were sent with SEND_ZC
  std::uint16_t status = 0;           // sent to the client; 0: none was
  http::Version version = http::Version::http11;
  std::uint8_t tries = 0;  // servers that were tried
  bool reused = false;     // the server connection had served before
  EndReason end;
  std::string_view client_address;
  std::uint16_t client_port = 0;
  std::string_view method;  // empty when the head could not be read
  std::string_view target;  // as sent, escaped by the formatter
  std::string_view host;
  std::string_view user_agent;
  std::string_view referer;
  std::string_view mover;  // what moved most of the bodies (net::Mover); empty: none was relayed
  std::string_view grpc_status;  // as the client was told; empty: it is no gRPC, or none was sent
  std::string_view tls_version;  // with the client: "TLSv1.3"; empty: clear text
  std::string_view tls_cipher;
  std::string_view tls_client;  // subject of its certificate; empty: it showed none
  std::string_view request_id;
  std::string_view listener;
  std::string_view upstream;  // name in the configuration; empty: answered here
  std::string_view server;    // its address as configured
};

// One per ring, called on its thread; must not block. It copies what it wants to keep.
class AccessSink {
 public:
  virtual ~AccessSink() = default;
  virtual void record(const AccessRecord& record) = 0;
};

}  // namespace ringside::proxy
