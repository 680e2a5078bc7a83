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
  text += kernel.rekey ? ", rekey=yes" : ", rekey=no";
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
  for (std::size_t entry = 0; entry < snapshot_->tls.size(); ++entry) {
    const tls::Material::Entry& loaded = material_->entries[entry];
    watchers_.emplace_back(snapshot_->tls[entry], loaded.credentials);
    std::vector<std::string> files;
    if (loaded.tickets && !loaded.tickets->file().empty()) files.push_back(loaded.tickets->file());
    ticket_files_.emplace_back(std::move(files));
  }
}

void TlsFiles::look() {
  for (std::size_t entry = 0; entry < watchers_.size(); ++entry) {
    look_at_certificates(entry);
    look_at_tickets(entry);
  }
}

void TlsFiles::look_at_tickets(std::size_t entry) {
  const auto& keys = material_->entries[entry].tickets;
  if (!keys) return;
  if (keys->rotate(steady_ms())) log(base::LogLevel::info, entry, "new ticket key");
  if (!ticket_files_[entry].changed()) return;
  if (const auto loaded = keys->reload(); !loaded)
    log(base::LogLevel::error, entry, loaded.error() + "; the ticket keys of before stay");
  else
    log(base::LogLevel::info, entry, "changed ticket keys are in use");
}

void TlsFiles::look_at_certificates(std::size_t entry) {
  tls::CredentialsWatcher::Report report = watchers_[entry].poll(std::time(nullptr));
  for (const std::string& warning : report.warnings)
    log(base::LogLevel::warn, entry, warning);
  for (const std::string& error : report.errors)
    log(base::LogLevel::error, entry, error + "; the files of before stay");
  if (report.outcome != tls::CredentialsWatcher::Outcome::replaced) return;
  material_ = tls::with_credentials(*material_, entry, watchers_[entry].current());
  publish_(material_);
  log(base::LogLevel::info, entry, "changed files are in use");
}

void TlsFiles::log(base::LogLevel level, std::size_t entry, std::string_view what) {
  std::string text = "[tls.";
  text.append(snapshot_->tls[entry].name).append("]: ").append(what);
  logger_.log(level, "tls", text);
}

}  // namespace ringside::app
