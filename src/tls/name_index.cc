#include "name_index.h"

#include <algorithm>
#include <array>

#include "ringside/base/text.h"

namespace ringside::tls {
namespace {

constexpr std::size_t name_bytes_max = 255;

bool has_name(const Certificate& certificate, std::string_view name) {
  return std::find(certificate.names.begin(), certificate.names.end(), name) !=
         certificate.names.end();
}

// "*.a.test" of "www.a.test"; empty for a wildcard and for a single label.
std::string wildcard_of(std::string_view name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos || name.starts_with('*')) return {};
  return "*" + std::string(name.substr(dot));
}

void add_for(std::span<const Certificate> certificates, std::string_view name,
             std::vector<std::uint32_t>& members) {
  if (name.empty()) return;
  for (std::uint32_t i = 0; i < certificates.size(); ++i) {
    if (!has_name(certificates[i], name)) continue;
    const bool taken = std::any_of(members.begin(), members.end(), [&](std::uint32_t member) {
      return certificates[member].key_type == certificates[i].key_type;
    });
    if (!taken) members.push_back(i);
  }
}

}  // namespace

NameIndex::NameIndex(std::span<const Certificate> certificates)
    : certificate_count_(certificates.size()) {
  auto members_for = [&](const std::string& name, std::vector<std::uint32_t> members) {
    add_for(certificates, name, members);
    add_for(certificates, wildcard_of(name), members);
    return members;
  };
  if (!certificates.empty()) {
    const auto& names = certificates[0].names;
    set_of(names.empty() ? std::vector<std::uint32_t>{0} : members_for(names[0], {0}));
  }
  for (const Certificate& certificate : certificates) {
    for (const std::string& name : certificate.names)
      names_.try_emplace(name, set_of(members_for(name, {})));
  }
}

std::uint32_t NameIndex::set_of(std::vector<std::uint32_t> members) {
  std::sort(members.begin(), members.end());
  const auto known = std::find(sets_.begin(), sets_.end(), members);
  if (known != sets_.end()) return static_cast<std::uint32_t>(known - sets_.begin());
  sets_.push_back(std::move(members));
  return static_cast<std::uint32_t>(sets_.size() - 1);
}

int NameIndex::find(std::string_view name) const {
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty() || name.size() > name_bytes_max) return -1;
  std::array<char, name_bytes_max> buffer{};
  std::transform(name.begin(), name.end(), buffer.begin(), base::to_lower);
  const std::string_view lower(buffer.data(), name.size());
  if (const auto exact = names_.find(lower); exact != names_.end()) {
    return static_cast<int>(exact->second);
  }
  const std::size_t dot = lower.find('.');
  if (dot == 0 || dot == std::string_view::npos) return -1;
  // The last byte of the first label is no longer needed.
  buffer[dot - 1] = '*';
  const auto wild = names_.find(lower.substr(dot - 1));
  return wild == names_.end() ? -1 : static_cast<int>(wild->second);
}

std::vector<std::uint32_t> NameIndex::unused() const {
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < certificate_count_; ++i) {
    const bool used = std::any_of(sets_.begin(), sets_.end(), [&](const auto& members) {
      return std::find(members.begin(), members.end(), i) != members.end();
    });
    if (!used) out.push_back(i);
  }
  return out;
}

}  // namespace ringside::tls
