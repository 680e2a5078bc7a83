#include "client_transport.h"

#include <algorithm>
#include <string>
#include <utility>

namespace ringside::proxy {

bool ClientTransport::adopt_socket(int fd, const net::Address* peer, AddressPlace place) {
  if (!secure() || !stream_.adopt(fd)) return false;
  place_ = std::move(place);
  if (peer != nullptr) keep_address(*peer);
  return true;
}

bool ClientTransport::secure() {
  if (!context_.runtime->snapshot().listens[facts_.listen].tls) return true;
  tls_ = context_.runtime->tls->accept(facts_.listen);
  if (tls_ == nullptr) return false;
  stream_.secure(*tls_);
  facts_.secure = true;
  return true;
}

void ClientTransport::note_security() {
  client_tls_.emplace(*tls_);
  facts_.tls = &*client_tls_;
}

void ClientTransport::log_insecure() {
  log_tls(tls_->failure_text());
}

void ClientTransport::log_tls(const std::string& why) {
  find_address();
  context_.logger.log(base::LogLevel::info, "tls",
                      "client " + std::string(facts_.address) + ": " + why);
}

void ClientTransport::read_address() {
  base::Result<net::Address> peer = context_.sys.peer_address(stream_.descriptor());
  if (peer) return keep_address(*peer);
  address_bytes_ = 1;
  address_[0] = '-';
  facts_.address = {address_, address_bytes_};
}

void ClientTransport::keep_address(const net::Address& peer) {
  address_bytes_ = static_cast<std::uint8_t>(peer.write_ip(address_, sizeof address_));
  facts_.port = peer.port();
  facts_.address = {address_, address_bytes_};
}

std::uint64_t ClientTransport::bytes_delivered() const {
  const int owed = context_.sys.unacknowledged(stream_.descriptor());
  const std::uint64_t sent = stream_.bytes_sent();
  return owed <= 0 ? sent : sent - std::min(sent, static_cast<std::uint64_t>(owed));
}

}  // namespace ringside::proxy
