#include "ringside/filter/forwarding.h"

#include <algorithm>
#include <cstring>

#include "field_edits.h"
#include "field_run.h"
#include "forwarded_field.h"
#include "template_text.h"

namespace ringside::filter {
namespace {

using http::FieldId;

constexpr std::uint32_t bit(FieldId id) {
  return 1U << static_cast<unsigned>(id);
}

// Fields of this connection or of its framing, whatever Connection says. The caller writes them.
constexpr std::uint32_t connection_fields =
    bit(FieldId::connection) | bit(FieldId::content_length) | bit(FieldId::expect) |
    bit(FieldId::host) | bit(FieldId::http2_settings) | bit(FieldId::keep_alive) |
    bit(FieldId::proxy_connection) | bit(FieldId::te) | bit(FieldId::transfer_encoding) |
    bit(FieldId::upgrade);

constexpr std::uint32_t x_forwarded_fields = bit(FieldId::x_forwarded_for) |
                                             bit(FieldId::x_forwarded_host) |
                                             bit(FieldId::x_forwarded_proto);

// What only a proxy may say about a client. Other proxies' names for it are on the list too, since
// frameworks believe them.
constexpr std::string_view proxy_prefix = "x-forwarded-";
constexpr std::string_view proxy_names[] = {"forwarded", "x-real-ip"};
// Who showed which certificate (RFC 9440 §4).
constexpr std::string_view certificate_names[] = {"client-cert", "client-cert-chain"};
// Names whose folded variants (C_ontent_Length) are dropped beside those.
constexpr std::string_view managed_names[] = {"content-length", "transfer-encoding",
                                              "x-request-id"};

bool is_proxy_claim(std::string_view name) {
  const char first = name.empty() ? '\0' : base::to_lower(name[0]);
  if (first == 'c') {
    return std::any_of(std::begin(certificate_names), std::end(certificate_names),
                       [name](std::string_view known) { return folds_to(name, known); });
  }
  if (first != 'x' && first != 'f') return false;  // most names
  if (name.size() > proxy_prefix.size() &&
      folds_to(name.substr(0, proxy_prefix.size()), proxy_prefix)) {
    return true;
  }
  for (const std::string_view known : proxy_names) {
    if (folds_to(name, known)) return true;
  }
  return false;
}

bool is_folded(std::string_view name) {
  return std::memchr(name.data(), '_', name.size()) != nullptr ||
         std::memchr(name.data(), '.', name.size()) != nullptr;
}

// A name that a server behind a gateway interface takes for a managed one, or for one that the
// route sets.
bool is_spoof(std::string_view name, const config::HeaderEdits& edits) {
  if (is_proxy_claim(name)) return true;
  for (const std::string_view known : managed_names) {
    if (folds_to(name, known)) return true;
  }
  for (const auto& [set, text] : edits.set) {
    if (folds_to(name, set) && !is_name(name, set)) return true;
  }
  return false;
}

class RequestWriter {
 public:
  RequestWriter(http::HeadWriter& out, const http::RequestHead& head, const RequestFacts& facts,
                const config::Forwarding& forwarding, const config::HeaderEdits& edits)
      : out_(out),
        head_(head),
        facts_(facts),
        forwarding_(forwarding),
        edits_(edits),
        edited_(!edits.empty()),
        managed_(managed_fields()) {}

  void write() {
    FieldRun run(out_);
    for (const http::Field& field : head_.fields) {
      if (field.hop_by_hop) continue;
      if (travels(field)) run.add(field);
      seen_ |= bit(field.id);
    }
    run.flush();
    if (forwarding_.x_forwarded) write_x_forwarded();
    if (forwarding_.forwarded) write_forwarded();
    if (forwarding_.via) write_via();
    if (forwarding_.request_id && !facts_.request_id.empty() && wanted("x-request-id")) {
      out_.field("X-Request-Id", facts_.request_id);
    }
    if (facts_.early) out_.field("Early-Data", "1");
    if (edited_) write_edits(out_, facts_, edits_);
  }

 private:
  // Those that are written behind the others, joined with what came.
  std::uint32_t managed_fields() const {
    std::uint32_t fields = connection_fields;
    // A stranger's word about the client never travels, even when we say nothing ourselves.
    if (forwarding_.x_forwarded || !facts_.peer_trusted) fields |= x_forwarded_fields;
    if (forwarding_.forwarded || !facts_.peer_trusted) fields |= bit(FieldId::forwarded);
    if (forwarding_.via) fields |= bit(FieldId::via);
    if (forwarding_.request_id) fields |= bit(FieldId::x_request_id);
    return fields;
  }

  bool travels(const http::Field& field) const {
    if ((managed_ & bit(field.id)) != 0) return false;
    if (field.id == FieldId::other) {
      if (facts_.early && is_name(field.name, early_data_name)) return false;
      if (is_folded(field.name)) {
        if (!forwarding_.underscore_names && is_spoof(field.name, edits_)) return false;
      } else if (!facts_.peer_trusted && is_proxy_claim(field.name)) {
        return false;
      }
    }
    return !edited_ || !edits_drop(edits_, field.name);
  }

  bool wanted(std::string_view name) const { return !edited_ || !edits_drop(edits_, name); }

  // Appends all values of that field, as one list. True when there was any.
  bool append_received(FieldId id) {
    bool any = false;
    if ((seen_ & bit(id)) == 0) return any;
    for (const http::Field& field : head_.fields) {
      if (field.id != id || field.hop_by_hop || field.value.empty()) continue;
      if (any) out_.append(", ");
      out_.append(field.value);
      any = true;
    }
    return any;
  }

  const http::Field* received(FieldId id) const {
    if (!facts_.peer_trusted || (seen_ & bit(id)) == 0) return nullptr;
    for (const http::Field& field : head_.fields) {
      if (field.id == id && !field.hop_by_hop && !field.value.empty()) return &field;
    }
    return nullptr;
  }

  void write_x_forwarded() {
    if (wanted("x-forwarded-for")) write_x_forwarded_for();
    if (wanted("x-forwarded-proto")) {
      const http::Field* proto = received(FieldId::x_forwarded_proto);
      out_.field("X-Forwarded-Proto", proto == nullptr ? facts_.scheme : proto->value);
    }
    if (wanted("x-forwarded-host")) {
      const http::Field* host = received(FieldId::x_forwarded_host);
      const std::string_view value = host == nullptr ? facts_.host : host->value;
      if (!value.empty()) out_.field("X-Forwarded-Host", value);
    }
  }

  void write_x_forwarded_for() {
    // A unix socket's other end has no address that a server could read.
    const bool has_address =
        !facts_.peer_address.empty() && !facts_.peer_address.starts_with("unix");
    const bool has_list = received(FieldId::x_forwarded_for) != nullptr;
    if (!has_address && !has_list) return;
    out_.begin_field("X-Forwarded-For");
    if (has_list) append_received(FieldId::x_forwarded_for);
    if (has_list && has_address) out_.append(", ");
    if (has_address) out_.append(facts_.peer_address);
    out_.end_field();
  }

  void write_forwarded() {
    if (!wanted("forwarded")) return;
    out_.begin_field("Forwarded");
    if (facts_.peer_trusted && append_received(FieldId::forwarded)) out_.append(", ");
    append_forwarded_element(out_, facts_);
    out_.end_field();
  }

  void write_via() {
    if (!wanted("via")) return;
    out_.begin_field("Via");
    if (append_received(FieldId::via)) out_.append(", ");
    append_via_element(out_, head_.version, facts_.server_name);
    out_.end_field();
  }

 public:
  // RFC 9110 §7.6.3: the protocol that the message came in with, and our pseudonym.
  static void append_via_element(http::HeadWriter& out, http::Version version,
                                 std::string_view name) {
    switch (version) {
      case http::Version::http10:
        out.append("1.0 ");
        break;
      case http::Version::http11:
        out.append("1.1 ");
        break;
      case http::Version::http2:
        out.append("2.0 ");
        break;
    }
    out.append(name.empty() ? std::string_view("ringside") : name);
  }

 private:
  http::HeadWriter& out_;
  const http::RequestHead& head_;
  const RequestFacts& facts_;
  const config::Forwarding& forwarding_;
  const config::HeaderEdits& edits_;
  const bool edited_;
  const std::uint32_t managed_;
  std::uint32_t seen_ = 0;  // ids of the fields that are not hop-by-hop
};

}  // namespace

void write_edit(http::HeadWriter& out, const RequestFacts& facts, std::string_view name,
                const config::Template& text) {
  bool begun = false;
  template_pieces(text, facts, [&](std::string_view piece) {
    if (!begun) out.begin_field(name);
    begun = true;
    out.append(piece);
  });
  if (begun) out.end_field();
}

void write_edits(http::HeadWriter& out, const RequestFacts& facts,
                 const config::HeaderEdits& edits) {
  for (const auto& [name, text] : edits.set) {
    if (name != "host") write_edit(out, facts, name, text);
  }
  for (const auto& [name, text] : edits.add)
    write_edit(out, facts, name, text);
}

void write_request_fields(http::HeadWriter& out, const http::RequestHead& head,
                          const RequestFacts& facts, const config::Forwarding& forwarding,
                          const config::HeaderEdits& edits, base::Arena&) {
  RequestWriter(out, head, facts, forwarding, edits).write();
}

void write_response_fields(http::HeadWriter& out, const http::ResponseHead& head,
                           const RequestFacts& facts, const config::Forwarding& forwarding,
                           const config::HeaderEdits& edits, const Hsts& hsts) {
  const bool edited = !edits.empty();
  const bool own_hsts = !hsts.value.empty();
  bool has_via = false;
  FieldRun run(out);
  for (const http::Field& field : head.fields) {
    if (field.hop_by_hop || (connection_fields & bit(field.id)) != 0) continue;
    if (field.id == FieldId::via && forwarding.via) {
      has_via = true;
      continue;
    }
    if (own_hsts && is_name(field.name, hsts_name)) continue;
    if (edited && edits_drop(edits, field.name)) continue;
    run.add(field);
  }
  run.flush();
  if (own_hsts && hsts.secure && !(edited && edits_drop(edits, hsts_name))) {
    out.field("Strict-Transport-Security", hsts.value);
  }
  if (forwarding.via && !(edited && edits_drop(edits, "via"))) {
    out.begin_field("Via");
    for (const http::Field& field : head.fields) {
      if (!has_via || field.id != FieldId::via || field.hop_by_hop || field.value.empty()) continue;
      out.append(field.value);
      out.append(", ");
    }
    RequestWriter::append_via_element(out, head.version, facts.server_name);
    out.end_field();
  }
  if (edited) write_edits(out, facts, edits);
}

bool trailer_travels(const http::Field& field, const config::Forwarding& forwarding) {
  if (field.hop_by_hop || (connection_fields & bit(field.id)) != 0) return false;
  if (is_folded(field.name) && forwarding.underscore_names) return true;
  return !is_spoof(field.name, {});
}

const config::Template* host_override(const config::HeaderEdits& edits) {
  for (const auto& [name, text] : edits.set) {
    if (name == "host") return &text;
  }
  return nullptr;
}

void drop_managed_trailers(http::FieldList& trailers) {
  static const config::HeaderEdits none;
  for (http::Field& field : trailers) {
    if (is_spoof(field.name, none)) field.hop_by_hop = true;
  }
}

}  // namespace ringside::filter
