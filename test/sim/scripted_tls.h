// The proxy's side of the simulated TLS: what stands where OpenSSL stands in production.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ringside/tls/channel.h"
#include "ringside/tls/control_record.h"
#include "ringside/tls/layer.h"
#include "ringside/tls/material.h"

#include "core.h"
#include "tls_end.h"

namespace ringside::sim {

// What all layers of a simulation share. Outlives them.
struct ScriptedTls {
  explicit ScriptedTls(Core& with) : core(with), random(with.random.fork()) {}
  Core& core;
  Random random;
  std::size_t layers = 0;               // that exist now
  std::vector<std::string> h2_servers;  // where the proxy offers HTTP/2, as their endpoints' texts
  config::KernelTls kernel = config::KernelTls::off;
  bool early_data = false;  // is taken from clients
  // For breaking things on purpose.
  bool trusts_truncation = false;
  bool ends_silently = false;
  bool trusts_unsafe_early = false;
};

class ScriptedLayer final : public tls::Layer {
 public:
  ScriptedLayer(ScriptedTls& shared, net::SlicePool& slices, TlsEnd::Role role, bool h2);
  ~ScriptedLayer() override;

  tls::ConnectionInfo info() const override;
  tls::Peer peer() override { return tls::Peer(info()); }
  const tls::Credentials* credentials() const override { return nullptr; }
  std::string failure_text() const override;
  void dispose() override { delete this; }

  Opened open(std::string_view bytes, std::span<char> room) override;
  bool early() const override { return end_.early() && !trusted_; }
  Status end_of_input() override;
  Sealed seal(std::span<const std::string_view> pieces, std::span<char> room) override;
  bool can_seal() const override { return end_.can_send() && !kernel_sends_; }
  std::size_t own_bytes() const override { return end_own().size(); }
  std::size_t take_own(std::span<char> room) override;
  void close() override {
    if (!shared_.ends_silently) end_.say_close();
  }
  void rest() override {}

  void on_socket(net::SysPort& sys, int fd) override;
  bool hand_over_sending(net::SysPort& sys, int fd) override;
  bool holds_receiving() const override;
  bool wants_to_hand_over() const override;
  std::size_t bytes_to_hand_over() const override;
  bool hand_over_receiving(net::SysPort& sys, int fd) override;
  bool refused() const override { return refused_; }
  msghdr* control_message() override { return control_.message(); }
  Control on_control(net::SysPort& sys, int fd, std::size_t bytes) override;
  msghdr* closing_message() override;

 private:
  void stay();
  bool give(Opened& out, std::span<char> room);
  bool happened(TlsEnd::Event event, Opened& out);
  bool install(net::SysPort& sys, int fd, bool tx);
  const std::string& end_own() const { return const_cast<TlsEnd&>(end_).own(); }
  Status status_of(TlsEnd::Event event) const;

  ScriptedTls& shared_;
  TlsEnd end_;
  std::size_t given_ = 0;  // of the plaintext that was opened last
  std::size_t record_max_;
  tls::ControlParser parser_{tls::Version::tls13};
  tls::ControlReceive control_;
  tls::AlertMessage closing_;
  bool early_told_ = false;
  bool trusted_ = false;  // by mistake
  bool data_received_ = false;
  bool kernel_sends_ = false;
  bool kernel_opens_ = false;
  bool refused_ = false;
  bool close_read_ = false;  // from the kernel
  bool close_said_ = false;  // by the kernel
};

// Of a configuration that speaks TLS: its contexts make ScriptedLayers.
class ScriptedMaterial final : public tls::Material {
 public:
  explicit ScriptedMaterial(ScriptedTls& shared) : shared_(shared) {}
  tls::ContextSet make(const config::Snapshot&, const tls::ContextSet*, bool) const override {
    return {};
  }
  std::unique_ptr<tls::Contexts> contexts(const tls::ContextSet& set,
                                          tls::Channels& channels) const override;

 private:
  ScriptedTls& shared_;
};

}  // namespace ringside::sim
