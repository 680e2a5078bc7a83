// What a stranger sends as frames of HTTP/2, behind the preface. Oracles: heads are as strict as
// those of HTTP/1.1; whole input equals split input; a connection that has ended takes nothing; all
// memory comes back.
#include "ringside/http/uri.h"

#include "../unit/http/h2_peer.h"
#include "oracle.h"

namespace {

using namespace ringside;

// Small enough that the fuzzer reaches them.
constexpr http::H2Limits tight_limits{
    .head = {.line_bytes_max = 40, .head_bytes_max = 400, .fields_max = 5},
    .streams_max = 3,
    .stream_window_bytes = 100,
    .connection_window_bytes = 65'535};

void check_heads(const test::H2Recorder& peer) {
  for (const http::RequestHead* head : peer.heads) {
    fuzz::check_fields(head->fields);
    fuzz::require(head->version == http::Version::http2, "the version is 2");
    fuzz::require(head->framing.kind != http::Framing::Kind::until_close, "the length is known");
    const auto authority = http::parse_authority(head->authority);
    fuzz::require(authority && authority->host == head->host, "host is that of authority");
    for (const http::Field& field : head->fields) {
      fuzz::require(field.id != http::FieldId::connection && field.id != http::FieldId::upgrade &&
                        field.id != http::FieldId::transfer_encoding,
                    "no field of a connection");
    }
  }
}

// What was heard, with the pieces of a body joined; without them where they belong to a bad
// request, since how much of it was passed on depends on when its fault came.
std::string heard(const test::H2Recorder& peer) {
  std::string out;
  std::string_view last;  // "N data " of the line before
  std::size_t before_last = 0;
  for (const std::string& event : peer.events) {
    const std::size_t bad = event.find(" bad ");
    if (bad != std::string::npos && last == event.substr(0, bad) + " data ")
      out.resize(before_last);
    const std::size_t data = event.find(" data ");
    const std::string_view prefix = data == std::string::npos
                                        ? std::string_view{}
                                        : std::string_view(event).substr(0, data + 6);
    const bool joins = !prefix.empty() && prefix == last;
    if (!joins) before_last = out.size();
    out += joins ? event.substr(prefix.size()) : "\n" + event;
    last = prefix;
  }
  return out;
}

// Nothing is sent before all was received, since what is said depends on when.
std::string play(std::string_view input, const http::H2Limits& limits, bool split) {
  test::H2Recorder peer(limits);
  peer.greet();
  const std::size_t at = split ? fuzz::split_of(input) : input.size();
  for (const std::string_view part : {input.substr(0, at), input.substr(at)}) {
    const fuzz::Exact piece(part);
    const bool alive = peer.connection.receive(piece.view(), 0);
    fuzz::require(alive != peer.connection.ended(), "the end is told");
  }
  std::string out = heard(peer);
  check_heads(peer);
  for (auto& stream : peer.streams) {
    if (!stream->closed() && stream->head_received()) peer.respond(stream->id(), "body");
  }
  peer.connection.send();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view input(reinterpret_cast<const char*>(data), bytes);
  for (const http::H2Limits& limits : {http::H2Limits{}, tight_limits}) {
    fuzz::require_equal(play(input, limits, false), play(input, limits, true),
                        "split input differs");
  }
  return 0;
}
