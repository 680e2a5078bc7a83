// TLS as sessions see it: a stream's record layer, and what makes it. Behind it is OpenSSL
// (channel.h, material.h), or a simulation.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "ringside/config/snapshot.h"
#include "ringside/net/record_layer.h"
#include "ringside/tls/credentials.h"
#include "ringside/tls/engine.h"
#include "ringside/tls/peer_identity.h"

namespace ringside::tls {

// Owner: a session (LayerPtr); destroyed after its stream has closed. Thread: its ring's.
class Layer : public net::RecordLayer {
 public:
  // What the handshake agreed on; only when it has just been completed.
  virtual ConnectionInfo info() const = 0;
  // The same for longer, and who the client is. Of a server's layer.
  virtual Peer peer() = 0;
  // Those that the client was accepted with. Null: it has none, or is no server's.
  virtual const Credentials* credentials() const = 0;
  // One line for a log: why it failed.
  virtual std::string failure_text() const = 0;
  // Gives it back to whoever made it.
  virtual void dispose() = 0;

 protected:
  explicit Layer(net::SlicePool& slices) : net::RecordLayer(slices) {}
  ~Layer() override = default;
};

struct LayerDisposer {
  void operator()(Layer* layer) const { layer->dispose(); }
};
using LayerPtr = std::unique_ptr<Layer, LayerDisposer>;

// The TLS of one configuration on one ring, whose thread uses it. Layers may outlive it.
class Contexts {
 public:
  virtual ~Contexts() = default;
  // For a connection that Snapshot::listens[listen], which speaks TLS, accepted. Null: there is no
  // place or no memory.
  virtual LayerPtr accept(std::size_t listen) = 0;
  // For one to this server of Snapshot::upstreams[upstream]. Null: as above.
  virtual LayerPtr connect(std::size_t upstream, const config::Endpoint& server) = 0;
};

}  // namespace ringside::tls
