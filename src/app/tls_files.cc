#include "tls_files.h"

#include <cstdio>
#include <ctime>
#include <string>
#include <utility>

namespace ringside::app {
namespace {

std::uint64_t steady_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

}  // namespace

std::string describe(const tls::KernelSupport& kernel) {
  if (!kernel.any()) return "ktls: no: " + kernel.reason;
  std::string text = "ktls: yes:";
  if (kernel.aes128_gcm) text += " AES-128-GCM";
  if (kernel.aes256_gcm) text += " AES-256-GCM";
  if (kernel.chacha20_poly1305) text += " ChaCha20-Poly1305";
  return kernel.reason.empty() ? text : text + "; " + kernel.reason;
}

std::shared_ptr<const tls::Material> load_tls_or_complain(const config::Snapshot& snapshot,
                                                          const tls::KernelSupport& kernel) {
  tls::LoadedMaterial loaded =
      tls::load_material(snapshot, std::time(nullptr), steady_ms(), kernel);
  for (const std::string& error : loaded.errors)
    std::fprintf(stderr, "%s\n", error.c_str());
  for (const std::string& warning : loaded.warnings)
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  return std::move(loaded.material);
}

TlsFiles::TlsFiles(config::SnapshotRef snapshot, std::shared_ptr<const tls::Material> material,
                   base::Logger& logger,
                   std::function<void(std::shared_ptr<const tls::Material>)> publish)
    : snapshot_(std::move(snapshot)),
      material_(std::move(material)),
      logger_(logger),
      publish_(std::move(publish)) {
  for (std::size_t entry = 0; entry < snapshot_->tls.size(); ++entry)
    watchers_.emplace_back(snapshot_->tls[entry], material_->entries[entry].credentials);
}

void TlsFiles::look() {
  for (std::size_t entry = 0; entry < watchers_.size(); ++entry) {
    look_at(entry);
    if (const auto& keys = material_->entries[entry].tickets)
      change_tickets(*keys, snapshot_->tls[entry]);
  }
}

void TlsFiles::look_at(std::size_t entry) {
  const std::string title = "[tls." + snapshot_->tls[entry].name + "]";
  tls::CredentialsWatcher::Report report = watchers_[entry].poll(std::time(nullptr));
  for (const std::string& warning : report.warnings)
    logger_.log(base::LogLevel::warn, "tls", title + ": " + warning);
  for (const std::string& error : report.errors)
    logger_.log(base::LogLevel::error, "tls", title + ": " + error + "; the files of before stay");
  if (report.outcome != tls::CredentialsWatcher::Outcome::replaced) return;
  material_ = tls::with_credentials(*material_, entry, watchers_[entry].current());
  publish_(material_);
  logger_.log(base::LogLevel::info, "tls", title + ": changed files are in use");
}

void TlsFiles::change_tickets(tls::TicketKeys& keys, const config::Tls& config) {
  if (keys.rotate(steady_ms()))
    logger_.log(base::LogLevel::info, "tls", "[tls." + config.name + "]: new ticket key");
}

}  // namespace ringside::app
