// HTTP messages as every protocol version shows them to the exchange (RFC 9110).
// All views point into memory that the message's arena owns, or into the buffer that was parsed;
// `rebase` follows that buffer when it moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "ringside/base/arena.h"

namespace ringside::http {

enum class Method : std::uint8_t {
  get,
  head,
  post,
  put,
  delete_,
  connect,
  options,
  trace,
  patch,
  other
};

// Names of methods are case-sensitive (RFC 9110 §9.1).
Method method_of(std::string_view text);

// RFC 9110 §9.2.1 and §9.2.2. A method that we do not know is neither safe nor idempotent.
bool is_safe(Method method);
bool is_idempotent(Method method);

enum class Version : std::uint8_t { http10, http11, http2 };

// The fields that ringside itself looks at; everything else is `other`.
enum class FieldId : std::uint8_t {
  other,
  connection,
  content_length,
  content_type,
  date,
  expect,
  forwarded,
  host,
  http2_settings,
  keep_alive,
  location,
  max_forwards,
  proxy_authenticate,
  proxy_authorization,
  proxy_connection,
  referer,
  server,
  te,
  trailer,
  transfer_encoding,
  upgrade,
  user_agent,
  via,
  x_forwarded_for,
  x_forwarded_host,
  x_forwarded_proto,
  x_request_id,
};

// Case-insensitive.
FieldId field_id(std::string_view name);

struct Field {
  std::string_view name;   // as it was sent
  std::string_view value;  // without surrounding OWS
  FieldId id = FieldId::other;
  // Concerns this connection only: a hop-by-hop field of RFC 9110 §7.6.1, or named by Connection.
  // Such a field never travels. Host and the framing fields cannot be made hop-by-hop by a peer.
  bool hop_by_hop = false;
};

// Fields in the order they came. Storage is in an arena; growing copies within the arena.
class FieldList {
 public:
  // False when memory is exhausted.
  bool add(base::Arena& arena, const Field& field) {
    if (size_ == capacity_ && !grow(arena)) return false;
    std::construct_at(items_ + size_, field);
    ++size_;
    return true;
  }
  const Field* begin() const { return items_; }
  const Field* end() const { return items_ + size_; }
  Field* begin() { return items_; }
  Field* end() { return items_ + size_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Field& operator[](std::size_t i) { return items_[i]; }
  const Field& operator[](std::size_t i) const { return items_[i]; }
  // The first of that id or (case-insensitive) name; nullptr when there is none.
  const Field* find(FieldId id) const;
  const Field* find(std::string_view name) const;
  // Adds `delta` to every view that points into [from, from + bytes).
  void rebase(const char* from, std::size_t bytes, std::ptrdiff_t delta);

 private:
  bool grow(base::Arena& arena);

  Field* items_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = 0;
};

// How the length of a body is known (RFC 9112 §6.3).
struct Framing {
  enum class Kind : std::uint8_t {
    none,         // there is no body
    length,       // Content-Length; may be 0
    chunked,      // the chunked coding is the final one
    until_close,  // responses only
  };
  Kind kind = Kind::none;
  std::uint64_t length = 0;  // bytes, for Kind::length
};

enum class TargetForm : std::uint8_t { origin, absolute, authority, asterisk };  // RFC 9112 §3.2

struct RequestHead {
  Method method = Method::other;
  Version version = Version::http11;
  TargetForm form = TargetForm::origin;
  std::string_view method_text;
  std::string_view target;  // the bytes as sent
  // host[:port] that counts: of the absolute or authority form, else of Host; may be empty.
  std::string_view authority;
  std::string_view host;  // of `authority`, without port; IPv6 literals keep their brackets
  // As sent; "/" when an absolute form has none ("*" for OPTIONS with no query, RFC 9112 §3.2.4);
  // "*" for asterisk form; empty for authority form.
  std::string_view path;
  std::string_view query;  // without "?"
  bool has_query = false;
  bool keep_alive = true;        // the client would reuse the connection
  bool expect_continue = false;  // Expect: 100-continue, in HTTP/1.1 only (RFC 9110 §10.1.1)
  bool upgrade = false;          // Connection names Upgrade, and Upgrade is there (RFC 9110 §7.8)
  bool te_trailers = false;      // TE: trailers
  // The extended CONNECT of HTTP/2 (RFC 8441), told as the GET with Upgrade that HTTP/1.1 has.
  bool websocket = false;
  Framing framing;
  FieldList fields;
  void rebase(const char* from, std::size_t bytes, std::ptrdiff_t delta);
};

struct ResponseHead {
  std::uint16_t status = 0;
  Version version = Version::http11;
  std::string_view reason;
  bool keep_alive = true;  // the server would reuse the connection
  bool upgrade = false;
  // Trailers may follow the body though its length is told, so its last byte is not the end
  // (HTTP/2).
  bool end_follows = false;
  Framing framing;
  FieldList fields;
  bool interim() const { return status >= 100 && status < 200 && status != 101; }
  void rebase(const char* from, std::size_t bytes, std::ptrdiff_t delta);
};

// The standard reason phrase of a status; "" for one that is unknown.
std::string_view reason_phrase(std::uint16_t status);

}  // namespace ringside::http
