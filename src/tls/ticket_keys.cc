#include "ringside/tls/ticket_keys.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>

#include "openssl.h"
#include "pem_file.h"

namespace ringside::tls {
namespace {

constexpr std::size_t long_key_bytes = 80;
constexpr std::size_t short_key_bytes = 48;

using Digest = std::array<unsigned char, 32>;

bool hmac(std::span<const unsigned char> key, std::span<const unsigned char> text, Digest& out) {
  unsigned size = 0;
  return HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), text.data(), text.size(),
              out.data(), &size) != nullptr;
}

// HKDF (RFC 5869) with the key as it is in the file, and the binding and a label as the info.
bool derive(std::span<const unsigned char> source, std::span<const unsigned char> binding,
            TicketKey& key) {
  Digest extracted{};
  const auto name = source.first(TicketKey::name_bytes);
  bool good = hmac(name, source.subspan(TicketKey::name_bytes), extracted);
  auto expand = [&](std::string_view label, Digest& out) {
    std::vector<unsigned char> info(label.begin(), label.end());
    info.insert(info.end(), binding.begin(), binding.end());
    info.push_back(1);
    return hmac(extracted, info, out);
  };
  Digest derived_name{};
  good = good && expand("ringside ticket name", derived_name) &&
         expand("ringside ticket cipher", key.cipher) && expand("ringside ticket mac", key.mac);
  std::copy_n(derived_name.begin(), key.name.size(), key.name.begin());
  OPENSSL_cleanse(extracted.data(), extracted.size());
  return good;
}

std::expected<TicketKey, std::string> random_key(std::span<const unsigned char> binding) {
  std::array<unsigned char, long_key_bytes> source{};
  TicketKey key;
  const bool good = RAND_priv_bytes(source.data(), static_cast<int>(source.size())) == 1 &&
                    derive(source, binding, key);
  OPENSSL_cleanse(source.data(), source.size());
  if (!good) return std::unexpected(join({"no key for tickets can be made: ", take_reason()}));
  return key;
}

std::expected<std::vector<TicketKey>, std::string> keys_of_file(
    const std::string& file, std::span<const unsigned char> binding) {
  const auto bytes = read_file(file);
  if (!bytes) return std::unexpected(bytes.error());
  const std::size_t size = bytes->size();
  const std::size_t each = size % long_key_bytes == 0 ? long_key_bytes : short_key_bytes;
  if (size == 0 || size % each != 0) {
    return std::unexpected(
        join({file, " has ", std::to_string(size), " bytes; ticket keys are 80 or 48 bytes each"}));
  }
  if (size / each > TicketKeys::keys_max) {
    return std::unexpected(
        join({file, " has ", std::to_string(size / each), " ticket keys; at most 8 are used"}));
  }
  std::vector<TicketKey> keys(size / each);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!derive({bytes->data() + i * each, each}, binding, keys[i])) {
      return std::unexpected(join({file, ": ticket keys cannot be derived: ", take_reason()}));
    }
  }
  return keys;
}

}  // namespace

TicketKey::~TicketKey() {
  OPENSSL_cleanse(cipher.data(), cipher.size());
  OPENSSL_cleanse(mac.data(), mac.size());
}

std::expected<std::unique_ptr<TicketKeys>, std::string> TicketKeys::random(
    std::span<const unsigned char> binding, std::uint64_t period_ms, std::uint64_t now_ms) {
  auto key = random_key(binding);
  if (!key) return std::unexpected(std::move(key.error()));
  std::unique_ptr<TicketKeys> keys(new TicketKeys);
  keys->binding_.assign(binding.begin(), binding.end());
  keys->period_ms_ = period_ms;
  keys->rotated_ms_ = now_ms;
  keys->publish({&*key, 1});
  return keys;
}

std::expected<std::unique_ptr<TicketKeys>, std::string> TicketKeys::from_file(
    std::span<const unsigned char> binding, const std::string& file) {
  std::unique_ptr<TicketKeys> keys(new TicketKeys);
  keys->binding_.assign(binding.begin(), binding.end());
  keys->file_ = file;
  if (auto loaded = keys->reload(); !loaded) return std::unexpected(std::move(loaded.error()));
  return keys;
}

TicketKeys::~TicketKeys() {
  for (auto& key : words_) {
    for (auto& word : key)
      word.store(0, std::memory_order_relaxed);
  }
  // The stores are to memory that is given back at once, so nothing but this keeps them.
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

bool TicketKeys::rotate(std::uint64_t now_ms) {
  if (!file_.empty() || now_ms - rotated_ms_ < period_ms_) return false;
  const auto fresh = random_key(binding_);
  if (!fresh) return false;
  const std::array<TicketKey, 2> keys{*fresh, current()};
  // After a pause of two periods and more, the current key is as old as one that would be gone.
  const bool keep = now_ms - rotated_ms_ < 2 * period_ms_;
  publish(std::span(keys).first(keep ? 2 : 1));
  rotated_ms_ = now_ms;
  return true;
}

std::expected<void, std::string> TicketKeys::reload() {
  if (file_.empty()) return {};
  const auto keys = keys_of_file(file_, binding_);
  if (!keys) return std::unexpected(keys.error());
  publish(*keys);
  return {};
}

void TicketKeys::publish(std::span<const TicketKey> keys) {
  const std::uint64_t sequence = sequence_.load(std::memory_order_relaxed);
  sequence_.store(sequence + 1, std::memory_order_relaxed);
  // Each release store keeps the odd number before it; each acquire load of a reader keeps its
  // second look at the number behind it. (Fences would do the same, but ThreadSanitizer knows
  // none.)
  for (std::size_t i = 0; i < keys_max; ++i) {
    Words words{};
    if (i < keys.size()) {
      std::memcpy(words.data(), keys[i].name.data(), 16);
      std::memcpy(words.data() + 2, keys[i].cipher.data(), 32);
      std::memcpy(words.data() + 6, keys[i].mac.data(), 32);
    }
    for (std::size_t word = 0; word < words.size(); ++word)
      words_[i][word].store(words[word], std::memory_order_release);
    OPENSSL_cleanse(words.data(), sizeof(words));
  }
  count_.store(keys.size(), std::memory_order_release);
  sequence_.store(sequence + 2, std::memory_order_release);
}

TicketKey TicketKeys::load(std::size_t index) const {
  Words words{};
  for (std::size_t word = 0; word < words.size(); ++word)
    words[word] = words_[index][word].load(std::memory_order_acquire);
  TicketKey key;
  std::memcpy(key.name.data(), words.data(), 16);
  std::memcpy(key.cipher.data(), words.data() + 2, 32);
  std::memcpy(key.mac.data(), words.data() + 6, 32);
  OPENSSL_cleanse(words.data(), sizeof(words));
  return key;
}

TicketKey TicketKeys::current() const {
  while (true) {
    const std::uint64_t before = sequence_.load(std::memory_order_acquire);
    const TicketKey key = load(0);
    if (before % 2 == 0 && sequence_.load(std::memory_order_relaxed) == before) return key;
  }
}

bool TicketKeys::find(std::span<const unsigned char, TicketKey::name_bytes> name, TicketKey& key,
                      bool& is_current) const {
  std::array<std::uint64_t, 2> wanted{};
  std::memcpy(wanted.data(), name.data(), name.size());
  while (true) {
    const std::uint64_t before = sequence_.load(std::memory_order_acquire);
    const std::size_t count = std::min(count_.load(std::memory_order_acquire), keys_max);
    std::size_t at = 0;
    while (at < count && (words_[at][0].load(std::memory_order_acquire) != wanted[0] ||
                          words_[at][1].load(std::memory_order_acquire) != wanted[1]))
      ++at;
    if (at < count) key = load(at);
    if (before % 2 != 0 || sequence_.load(std::memory_order_relaxed) != before) continue;
    is_current = at == 0;
    return at < count;
  }
}

}  // namespace ringside::tls
