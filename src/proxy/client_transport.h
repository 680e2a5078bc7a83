// What an accepted connection is made of, below the protocol that it speaks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ringside/net/stream.h"
#include "ringside/tls/layer.h"

#include "client_tls.h"
#include "context.h"
#include "exchange.h"

namespace ringside::proxy {

// Owner: the connection's slab. Its stream belongs to one session at a time; the session that has
// it when it closes calls closed().
class ClientTransport {
 public:
  ClientTransport(Context& context, std::uint32_t listen, net::StreamHandler& handler)
      : context_(context), stream_(context.streams, handler) {
    facts_.listen = listen;
  }
  ClientTransport(const ClientTransport&) = delete;
  ClientTransport& operator=(const ClientTransport&) = delete;

  // Destroys the connection.
  virtual void closed() = 0;

  net::Stream& stream() { return stream_; }
  bool secured() const { return tls_ != nullptr; }
  const ClientFacts& facts() const { return facts_; }
  // Once a connection: the address cannot change. A multishot accept does not tell it.
  void find_address() {
    if (address_bytes_ == 0) read_address();
  }
  // Bytes that the client's kernel has taken.
  std::uint64_t bytes_delivered() const;
  // To be called when the record layer failed.
  void log_insecure();

 protected:
  ~ClientTransport() = default;
  // False when the ring has no place, or there is no memory for the TLS that the listener speaks.
  // `peer`: the client's address where it is known already, or null.
  bool adopt_socket(int fd, const net::Address* peer, AddressPlace place);
  void log_tls(const std::string& why);
  // The handshake is done.
  void note_security();
  // What the client chose of the listener's protocols; empty: it did not say.
  std::string_view chosen_protocol() const { return client_tls_->protocol(); }

  Context& context_;
  net::Stream stream_;
  tls::LayerPtr tls_;  // null: clear text
  ClientFacts facts_;

 private:
  bool secure();
  void read_address();
  void keep_address(const net::Address& peer);

  std::optional<ClientTls> client_tls_;  // once the handshake is done
  AddressPlace place_;
  std::uint8_t address_bytes_ = 0;
  char address_[46];
};

}  // namespace ringside::proxy
