// What the fields of one HTTP/2 header block say (RFC 9113 §8): the head of a request or of a
// response, or trailers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ringside/base/arena.h"
#include "ringside/http/message.h"
#include "ringside/http/parser.h"

#include "head_reader.h"

namespace ringside::http::detail {

// Takes the fields one by one, in order, and copies what is kept into the arena, as "name: value
// CRLF" one behind the other, so that they can go on to an HTTP/1.1 server in one piece.
//
// Strict, as RequestParser is. Fault 400 stands for a malformed request (RFC 9113 §8.1.1): upper
// case or other bytes that no name may have; control characters in a value, or blanks around it;
// pseudo-header fields that are unknown, doubled, behind regular ones, in trailers, or missing;
// fields of a connection; `te` other than "trailers"; no valid authority, or a Host that says
// another; a path that is none; a status that is none; Content-Length twice or no number. 414 and
// 431 stand for limits, 501 for an extended CONNECT to something else than a WebSocket.
class H2HeadReader {
 public:
  // `limits` must outlive the reader, the arena also what it read.
  H2HeadReader(base::Arena& arena, const HeadLimits& limits, Section section)
      : arena_(arena), limits_(limits), section_(section) {}

  // After a fault the size alone is looked at.
  void field(std::string_view name, std::string_view value);
  // As RFC 9113 §6.5.2 counts: 32 bytes for each field, beside its name and value.
  std::size_t list_bytes() const { return list_bytes_; }

  // The block is complete. False: see fault().
  bool finish_request(RequestHead& head, bool end_stream);
  // `asked` is the method of the request: it decides whether a body may follow.
  bool finish_response(ResponseHead& head, Method asked, bool end_stream);
  bool finish_trailers() { return !failed(); }
  FieldList& fields() { return fields_; }
  // Of RFC 9218; empty: there was none.
  std::string_view priority() const { return priority_; }
  const ParseFault& fault() const { return fault_; }

 private:
  enum Pseudo : std::uint8_t {
    method = 1,
    scheme = 2,
    authority = 4,
    path = 8,
    protocol = 16,
    status_code = 32,
  };

  bool failed() const { return !fault_.reason.empty(); }
  bool fail(std::uint16_t status, std::string_view reason);
  void pseudo_field(std::string_view name, std::string_view value);
  void take_pseudo(Pseudo which, std::string_view& into, std::string_view value);
  void regular_field(std::string_view name, std::string_view value);
  bool valid(std::string_view name, std::string_view value);
  bool take_known(const Field& field);
  bool take_host(std::string_view value);
  bool add(Field& field);
  bool join_cookies();
  void request_pseudo(std::string_view name, std::string_view value);
  bool finish_target(RequestHead& head);
  bool finish_websocket(RequestHead& head, bool end_stream);
  bool finish_authority(RequestHead& head);
  bool has(Pseudo which) const { return (pseudo_ & which) != 0; }
  bool seen(FieldId id) const { return (seen_ & bit(id)) != 0; }

  base::Arena& arena_;
  const HeadLimits& limits_;
  Section section_;
  std::uint8_t pseudo_ = 0;
  bool regular_seen_ = false;
  bool te_trailers_ = false;
  bool expect_continue_ = false;
  std::uint32_t seen_ = 0;
  std::size_t list_bytes_ = 0;
  std::size_t count_ = 0;
  std::uint64_t content_length_ = 0;
  char* at_ = nullptr;  // where the next field is copied to
  char* end_ = nullptr;
  std::string_view method_;
  std::string_view scheme_;
  std::string_view authority_;
  std::string_view path_;
  std::string_view protocol_;
  std::string_view status_;
  std::string_view host_;
  std::string_view priority_;
  FieldList fields_;
  FieldList crumbs_;  // of Cookie
  ParseFault fault_{};
};

}  // namespace ringside::http::detail
