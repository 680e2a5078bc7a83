// Which certificates a client gets for the name that it asks for (RFC 6066 §3). Pure.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ringside/tls/credentials.h"

namespace ringside::tls {

// A name has at most one certificate of each type of key, the first in the order of the
// configuration: exact names before wildcards. Those that go together are a set; sets are numbered
// from 0, which is the default (that of the first certificate).
class NameIndex {
 public:
  explicit NameIndex(std::span<const Certificate> certificates);

  // The certificates of each set, by their index.
  const std::vector<std::vector<std::uint32_t>>& sets() const { return sets_; }
  // The set for a name in any case; -1 when there is none for it. A wildcard stands for one label
  // (RFC 6125 §6.4.3). No allocation.
  int find(std::string_view name) const;
  // Certificates that are in no set, since those before them have all of their names.
  std::vector<std::uint32_t> unused() const;

 private:
  std::uint32_t set_of(std::vector<std::uint32_t> members);

  std::size_t certificate_count_;
  std::vector<std::vector<std::uint32_t>> sets_;
  std::map<std::string, std::uint32_t, std::less<>> names_;
};

}  // namespace ringside::tls
