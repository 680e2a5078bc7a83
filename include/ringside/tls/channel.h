// TLS as the record layer of a stream.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "ringside/base/slab.h"
#include "ringside/net/record_layer.h"
#include "ringside/tls/client_context.h"
#include "ringside/tls/control_record.h"
#include "ringside/tls/counters.h"
#include "ringside/tls/engine.h"
#include "ringside/tls/handoff.h"
#include "ringside/tls/layer.h"
#include "ringside/tls/peer_identity.h"
#include "ringside/tls/server_context.h"

namespace ringside::tls {

class Channels;

// Owner: a session, in its ring's Channels; destroyed after its stream has closed. It keeps the
// context that it was made from. Records are made here until the kernel takes over, one direction
// after the other, where the context says so and the kernel can.
class Channel final : public Layer {
 public:
  Channel(Channels& owner, net::SlicePool& slices, RecordScratch& scratch)
      : Layer(slices), owner_(owner), scratch_(scratch), handoff_(engine_) {}
  ~Channel() override;

  // One of the two, once, before the stream is secured with it. False: no memory.
  bool accept(std::shared_ptr<ServerContext> context);
  // `host`, `server`: as in ClientContext::new_session().
  bool connect(std::shared_ptr<ClientContext> context, std::string_view host,
               std::string_view server);

  bool kernel_sends() const { return handoff_.tx_installed(); }
  bool kernel_opens() const { return handoff_.rx_installed(); }

  ConnectionInfo info() const override { return engine_.info(); }
  Peer peer() override { return Peer(engine_.ssl()); }
  const Credentials* credentials() const override {
    return server_context_ == nullptr ? nullptr : &server_context_->credentials();
  }
  std::string failure_text() const override;
  void dispose() override;

  Opened open(std::string_view bytes, std::span<char> room) override;
  bool early() const override { return early_; }
  Status end_of_input() override;
  Sealed seal(std::span<const std::string_view> pieces, std::span<char> room) override;
  bool can_seal() const override { return engine_.can_send(); }
  std::size_t own_bytes() const override { return engine_.output_pending() + clear_text_.size(); }
  std::size_t take_own(std::span<char> room) override;
  void close() override { engine_.close(); }
  void rest() override { engine_.release_buffers(); }

  void on_socket(net::SysPort& sys, int fd) override;
  bool hand_over_sending(net::SysPort& sys, int fd) override;
  bool holds_receiving() const override;
  bool wants_to_hand_over() const override { return moving_ && handoff_.wants_rx(); }
  std::size_t bytes_to_hand_over() const override { return handoff_.receive_exactly(); }
  bool hand_over_receiving(net::SysPort& sys, int fd) override;
  bool refused() const override { return refused_; }
  msghdr* control_message() override;
  Control on_control(net::SysPort& sys, int fd, std::size_t bytes) override;
  msghdr* own_message() override;
  int said(net::SysPort& sys, int fd) override;
  msghdr* closing_message() override;

 private:
  // Beside a connection whose records the kernel opens, from its first one that is no data.
  struct ControlRecords {
    explicit ControlRecords(Version version) : parser(version) {}
    ControlParser parser;
    ControlReceive receive;
    KeyUpdateMessage update;
  };

  bool start(SslPtr ssl, bool kernel, bool required);
  Control on_key_update(net::SysPort& sys, int fd, bool reply_requested);
  void note_move();
  void note_secured();
  UserSpace reason_to_stay() const;
  Control fail(Failure::Cause cause);

  Channels& owner_;
  RecordScratch& scratch_;
  RoleCounters* counters_ = nullptr;  // once it has a role
  // Before the engine, which needs it to the last.
  std::shared_ptr<ServerContext> server_context_;
  std::shared_ptr<ClientContext> client_context_;
  Engine engine_;
  Handoff handoff_;
  std::unique_ptr<ControlRecords> control_;
  AlertMessage closing_;
  Failure kernel_failure_;       // once the engine is out of it
  std::string_view clear_text_;  // for a client that speaks HTTP in clear
  Version version_ = Version::tls13;
  bool begun_ = false;    // the handshake; for a server, when the client has said something
  bool secured_ = false;  // it is over
  bool stayed_ = false;   // in user space, with one direction at least, and was counted for it
  bool early_ = false;    // data came before
  bool wanted_ = false;   // that the kernel takes over
  bool attach_failed_ = false;  // to the kernel's protocol
  bool required_ = false;       // or the connection fails
  bool refused_ = false;        // it cannot, and was required
  bool close_read_ = false;
  bool close_said_ = false;
  bool update_owed_ = false;  // the peer wants a KeyUpdate of ours
};

// All TLS connections of one ring. Owner: its worker; outlives their sessions.
class Channels {
 public:
  Channels(net::SlicePool& slices, std::size_t connections_max)
      : slices_(slices), slab_(connections_max) {}

  // Null: there is no place.
  Channel* create() { return slab_.create(*this, slices_, scratch_); }
  void destroy(Channel* channel) { slab_.destroy(channel); }
  net::SlicePool& slices() { return slices_; }
  std::size_t in_use() const { return slab_.in_use(); }
  // Read by any thread.
  const Counters& counters() const { return counters_; }

 private:
  friend class Channel;
  net::SlicePool& slices_;
  Counters counters_;  // before its channels, which count to the last
  RecordScratch scratch_;
  base::Slab<Channel> slab_;
};

}  // namespace ringside::tls
