#include "ringside/tls/material.h"

#include <algorithm>
#include <utility>

#include "ringside/tls/channel.h"

#include "openssl.h"
#include "pem_file.h"

namespace ringside::tls {
namespace {

// For ALPN, in the listener's order.
std::vector<std::string> protocols_of(const config::Listen& listen) {
  std::vector<std::string> out;
  if (listen.http1) out = {"http/1.1", "http/1.0"};
  if (listen.http2) out.insert(listen.http1_preferred ? out.end() : out.begin(), "h2");
  return out;
}

std::vector<std::string> protocols_of(const config::Upstream& upstream) {
  switch (upstream.protocol) {
    case config::UpstreamProtocol::http1:
      return {"http/1.1"};
    case config::UpstreamProtocol::h2:
      return {"h2"};
    case config::UpstreamProtocol::automatic:
      return {"h2", "http/1.1"};
  }
  return {};
}

bool speaks_tls(const config::Upstream& upstream) {
  return std::ranges::any_of(upstream.servers, &config::UpstreamServer::tls);
}

bool may_hand_over(config::KernelTls wish, const KernelSupport& kernel) {
  return wish != config::KernelTls::off && kernel.any();
}

std::expected<std::unique_ptr<ServerContext>, std::string> make_server(
    const Material::Entry& entry, std::vector<std::string> protocols, const KernelSupport& kernel) {
  return ServerContext::make(entry.credentials, entry.tickets,
                             {.protocols = std::move(protocols),
                              .replays = entry.replays,
                              .kernel_tls = may_hand_over(entry.credentials->config.ktls, kernel),
                              .kernel_rekeys = kernel.rekey});
}

// Null: there is none.
std::shared_ptr<ServerContext> find_server(const ServerContexts& among,
                                           const Material::Entry& entry,
                                           const std::vector<std::string>& protocols) {
  const auto at = std::ranges::find_if(among, [&](const auto& context) {
    return context != nullptr && &context->credentials() == entry.credentials.get() &&
           context->options().protocols == protocols;
  });
  return at == among.end() ? nullptr : *at;
}

std::expected<std::unique_ptr<ClientContext>, std::string> make_client(
    const config::Upstream& upstream, std::shared_ptr<const TrustStore> trust,
    const KernelSupport& kernel) {
  return ClientContext::make(upstream.tls, upstream.name, std::move(trust),
                             {.protocols = protocols_of(upstream),
                              .kernel_tls = may_hand_over(upstream.tls.ktls, kernel),
                              .kernel_rekeys = kernel.rekey});
}

std::expected<std::shared_ptr<TicketKeys>, std::string> make_tickets(const Credentials& credentials,
                                                                     std::uint64_t now_ms) {
  const config::Tls& config = credentials.config;
  if (!config.tickets) return nullptr;
  if (!config.ticket_keys_file.empty())
    return TicketKeys::from_file(credentials.session_binding, config.ticket_keys_file);
  return TicketKeys::random(credentials.session_binding, config.ticket_rotation_ms, now_ms);
}

class Loader {
 public:
  Loader(UnixSeconds now, std::uint64_t now_ms, const KernelSupport& kernel)
      : now_(now), now_ms_(now_ms), kernel_(kernel) {}

  Material::Entry load(const config::Tls& config) {
    const std::string title = join({"[tls.", config.name, "]"});
    check_kernel(title, config.ktls);
    LoadedCredentials read = load_credentials(config, now_);
    note(title, read.errors, read.warnings);
    if (read.credentials == nullptr) {
      check_ticket_file(title, config);
      return {};
    }
    Material::Entry entry{
        .credentials = std::move(read.credentials), .tickets = nullptr, .replays = nullptr};
    auto tickets = make_tickets(*entry.credentials, now_ms_);
    if (!tickets) {
      note(title, {tickets.error()}, {});
      return {};
    }
    entry.tickets = std::move(*tickets);
    const std::string file = entry.tickets ? entry.tickets->file() : "";
    if (!file.empty() && world_readable(file))
      note(title, {}, {join({file, ": every user of this machine can read the ticket keys"})});
    if (config.early_data && entry.tickets) {
      entry.replays = std::make_shared<ReplayGuard>(now_ms_, !entry.tickets->file().empty());
    }
    if (const auto tried = make_server(entry, {"http/1.1"}, kernel_); !tried)
      note(title, {tried.error()}, {});
    return entry;
  }

  std::shared_ptr<const TrustStore> load(const config::Upstream& upstream) {
    if (!speaks_tls(upstream)) return nullptr;
    const std::string title = join({"[upstream.", upstream.name, ".tls]"});
    check_kernel(title, upstream.tls.ktls);
    std::shared_ptr<const TrustStore> trust;
    if (upstream.tls.verify) {
      auto loaded = TrustStore::load(upstream.tls.ca);
      if (!loaded) {
        note(title, {loaded.error()}, {});
        return nullptr;
      }
      trust = std::move(*loaded);
    }
    const auto tried = make_client(upstream, trust, kernel_);
    if (!tried)
      note(title, {tried.error()}, {});
    else
      out_.warnings.insert(out_.warnings.end(), (*tried)->warnings().begin(),
                           (*tried)->warnings().end());
    return trust;
  }

  LoadedMaterial finish(Material material) {
    material.kernel = kernel_;
    if (out_.errors.empty()) out_.material = std::make_shared<const Material>(std::move(material));
    return std::move(out_);
  }

 private:
  void note(const std::string& title, const std::vector<std::string>& errors,
            const std::vector<std::string>& warnings) {
    for (const std::string& error : errors)
      out_.errors.push_back(join({title, ": ", error}));
    for (const std::string& warning : warnings)
      out_.warnings.push_back(join({title, ": ", warning}));
  }

  // All that is wrong is said at once.
  void check_ticket_file(const std::string& title, const config::Tls& config) {
    if (config.ticket_keys_file.empty()) return;
    const auto keys = TicketKeys::from_file({}, config.ticket_keys_file);
    if (!keys) note(title, {keys.error()}, {});
  }

  void check_kernel(const std::string& title, config::KernelTls wish) {
    if (wish != config::KernelTls::require || kernel_.any()) return;
    note(title,
         {join({"ktls = \"require\", but this machine has no kernel TLS: ", kernel_.reason})}, {});
  }

  UnixSeconds now_;
  std::uint64_t now_ms_;
  const KernelSupport& kernel_;
  LoadedMaterial out_;
};

class ChannelContexts final : public Contexts {
 public:
  ChannelContexts(ContextSet set, Channels& channels) : channels_(channels), set_(std::move(set)) {}

  LayerPtr accept(std::size_t listen) override {
    Channel* channel = set_.servers[listen] == nullptr ? nullptr : channels_.create();
    if (channel == nullptr) return nullptr;
    LayerPtr out(channel);
    return channel->accept(set_.servers[listen]) ? std::move(out) : nullptr;
  }

  LayerPtr connect(std::size_t upstream, const config::Endpoint& server) override {
    Channel* channel = set_.clients[upstream] == nullptr ? nullptr : channels_.create();
    if (channel == nullptr) return nullptr;
    LayerPtr out(channel);
    const bool started = channel->connect(set_.clients[upstream], server.host, server.text);
    return started ? std::move(out) : nullptr;
  }

 private:
  Channels& channels_;
  ContextSet set_;
};

}  // namespace

ContextSet Material::make(const config::Snapshot& snapshot, const ContextSet* before,
                          bool same) const {
  return {server_contexts(*this, snapshot.listens,
                          before == nullptr ? ServerContexts() : before->servers),
          before != nullptr && same ? before->clients : client_contexts(*this, snapshot)};
}

std::unique_ptr<Contexts> Material::contexts(const ContextSet& set, Channels& channels) const {
  return std::make_unique<ChannelContexts>(set, channels);
}

LoadedMaterial load_material(const config::Snapshot& snapshot, UnixSeconds now,
                             std::uint64_t now_ms, const KernelSupport& kernel) {
  Loader loader(now, now_ms, kernel);
  Material material;
  for (const config::Tls& config : snapshot.tls)
    material.entries.push_back(loader.load(config));
  for (const config::Upstream& upstream : snapshot.upstreams)
    material.trust.push_back(loader.load(upstream));
  return loader.finish(std::move(material));
}

std::shared_ptr<const Material> with_credentials(const Material& material, std::size_t entry,
                                                 std::shared_ptr<const Credentials> credentials) {
  auto out = std::make_shared<Material>(material);
  out->entries[entry].credentials = std::move(credentials);
  return out;
}

ServerContexts server_contexts(const Material& material, const std::vector<config::Listen>& listens,
                               const ServerContexts& before) {
  ServerContexts out;
  for (const config::Listen& listen : listens) {
    if (!listen.tls) {
      out.push_back(nullptr);
      continue;
    }
    const Material::Entry& entry = material.entries[*listen.tls];
    std::vector<std::string> protocols = protocols_of(listen);
    std::shared_ptr<ServerContext> context = find_server(out, entry, protocols);
    if (context == nullptr) context = find_server(before, entry, protocols);
    if (context == nullptr) {
      auto made = make_server(entry, std::move(protocols), material.kernel);
      if (made) context = std::move(*made);
    }
    out.push_back(std::move(context));
  }
  return out;
}

ClientContexts client_contexts(const Material& material, const config::Snapshot& snapshot) {
  ClientContexts out;
  for (const config::Upstream& upstream : snapshot.upstreams) {
    std::shared_ptr<ClientContext> context;
    if (speaks_tls(upstream)) {
      auto made = make_client(upstream, material.trust[out.size()], material.kernel);
      if (made) context = std::move(*made);
    }
    out.push_back(std::move(context));
  }
  return out;
}

}  // namespace ringside::tls
