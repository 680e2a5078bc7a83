#include <cstring>

#include "ringside/base/text.h"
#include "ringside/filter/forwarding.h"

#include "addresses.h"
#include "forwarded_field.h"

namespace ringside::filter {
namespace {

bool same_prefix(const std::uint8_t* a, const std::uint8_t* b, unsigned bits) {
  const unsigned whole = bits / 8;
  if (std::memcmp(a, b, whole) != 0) return false;
  const unsigned rest = bits % 8;
  if (rest == 0) return true;
  const auto mask = static_cast<std::uint8_t>(0xFF00U >> rest);
  return ((a[whole] ^ b[whole]) & mask) == 0;
}

// A walk from the nearest hop to the farthest one, through proxies that we trust.
class Walk {
 public:
  Walk(const TrustedProxies& proxies, RequestFacts& facts) : proxies_(proxies), facts_(facts) {}

  // False: the walk is over.
  bool step(std::string_view text) {
    const auto node = parse_node(text);
    if (!node) return false;
    facts_.client_address = node->address;
    facts_.client_port = node->port;
    return proxies_.trusts(node->address);
  }

 private:
  const TrustedProxies& proxies_;
  RequestFacts& facts_;
};

bool counts(const http::Field& field, http::FieldId id) {
  return field.id == id && !field.hop_by_hop;
}

void walk_x_forwarded_for(const http::FieldList& fields, Walk& walk) {
  for (std::size_t i = fields.size(); i-- > 0;) {
    if (!counts(fields[i], http::FieldId::x_forwarded_for)) continue;
    std::string_view rest = fields[i].value;
    while (true) {
      const std::size_t comma = rest.rfind(',');
      const bool last = comma == std::string_view::npos;
      const std::string_view element = base::trim_ows(last ? rest : rest.substr(comma + 1));
      // Empty list elements mean nothing (RFC 9110 §5.6.1.2).
      if (!element.empty() && !walk.step(element)) return;
      if (last) break;
      rest = rest.substr(0, comma);
    }
  }
}

// The `for` values of one field, left to right. False when it is malformed or memory is exhausted.
bool read_nodes(std::string_view value, base::Arena& arena, std::string_view*& nodes,
                std::size_t& count) {
  std::size_t most = 1;
  for (char c : value)
    most += c == ',' ? 1 : 0;
  nodes = arena.allocate_array<std::string_view>(most);
  count = 0;
  if (nodes == nullptr) return false;
  ForwardedReader reader(value);
  while (true) {
    std::string_view node;
    const auto step = reader.next(arena, node);
    if (step == ForwardedReader::Step::malformed) return false;
    if (step == ForwardedReader::Step::end) return true;
    new (&nodes[count++]) std::string_view(node);
  }
}

void walk_forwarded(const http::FieldList& fields, Walk& walk, base::Arena& arena) {
  for (std::size_t i = fields.size(); i-- > 0;) {
    if (!counts(fields[i], http::FieldId::forwarded)) continue;
    std::string_view* nodes = nullptr;
    std::size_t count = 0;
    if (!read_nodes(fields[i].value, arena, nodes, count)) return;
    while (count-- > 0) {
      // "unknown", "_hidden" and an element without `for` name nobody: the walk ends there.
      if (!walk.step(nodes[count])) return;
    }
  }
}

}  // namespace

TrustedProxies::TrustedProxies(const std::vector<std::string>& ranges) {
  for (const std::string_view text : ranges) {
    if (text == "unix") {
      unix_peers_ = true;
      continue;
    }
    const std::size_t slash = text.find('/');
    const std::string_view base_text = text.substr(0, slash);
    const auto address = parse_address(base_text);
    if (!address) continue;  // `config` has refused the file already
    const bool written_v6 = base_text.find(':') != std::string_view::npos;
    const unsigned bits_max = written_v6 ? 128 : 32;
    unsigned bits = bits_max;
    if (slash != std::string_view::npos) {
      bits = base::parse_decimal<unsigned>(text.substr(slash + 1)).value_or(bits_max);
    }
    // An IPv4-mapped range covers IPv4 addresses by the bits behind its first 96.
    if (written_v6 && !address->v6) bits = bits > 96 ? bits - 96 : 0;
    Range range{};
    std::memcpy(range.bytes, address->bytes, sizeof range.bytes);
    range.v6 = address->v6;
    range.bits = static_cast<std::uint8_t>(bits);
    ranges_.push_back(range);
  }
}

bool TrustedProxies::trusts(std::string_view address) const {
  if (ranges_.empty() && !unix_peers_) return false;
  if (address.starts_with("unix")) return unix_peers_;
  if (ranges_.empty()) return false;
  const auto parsed = parse_address(address);
  if (!parsed) return false;
  for (const Range& range : ranges_) {
    if (range.v6 == parsed->v6 && same_prefix(range.bytes, parsed->bytes, range.bits)) return true;
  }
  return false;
}

void TrustedProxies::find_client(RequestFacts& facts, base::Arena& arena) const {
  facts.client_address = facts.peer_address;
  facts.client_port = facts.peer_port;
  facts.peer_trusted = trusts(facts.peer_address);
  if (!facts.peer_trusted || facts.request_fields == nullptr) return;
  Walk walk(*this, facts);
  bool any = false;
  for (const http::Field& field : *facts.request_fields) {
    any = any || counts(field, http::FieldId::x_forwarded_for);
  }
  if (any) {
    walk_x_forwarded_for(*facts.request_fields, walk);
  } else {
    walk_forwarded(*facts.request_fields, walk, arena);
  }
  if (facts.client_address.data() == facts.peer_address.data()) return;
  // The log wants the address when the head's buffer may be gone.
  const std::string_view kept = arena.copy(facts.client_address);
  if (kept.data() != nullptr) {
    facts.client_address = kept;
  } else {
    facts.client_address = facts.peer_address;
    facts.client_port = facts.peer_port;
  }
}

}  // namespace ringside::filter
