// What a stranger sends to a TLS listener, in pieces of any size, and control records of the
// kernel. Oracles: bytes consumed and given out stay within what was there, a failure is final and
// named, output does not depend on the room; control records mean the same in pieces.
#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "ringside/tls/control_record.h"
#include "ringside/tls/engine.h"

#include "../unit/tls/peer.h"
#include "oracle.h"

namespace {

using namespace ringside;
using namespace ringside::tls;

SSL_CTX* server(bool early_data) {
  static tls::test::Contexts contexts[2];
  SSL_CTX* context = contexts[early_data ? 1 : 0].of(Role::server);
  if (early_data) SSL_CTX_set_max_early_data(context, 1000);
  return context;
}

// The first byte of a piece is its size.
void feed_server(std::string_view input, std::size_t room, bool early_data) {
  static RecordScratch scratch;
  Engine engine;
  SslPtr ssl = tls::test::new_session(server(early_data), Role::server);
  fuzz::require(engine.start(std::move(ssl), scratch, {.early_data = early_data}).has_value(),
                "an engine starts");
  std::string plaintext(room, '\0');
  std::array<char, 7> output;
  while (!input.empty()) {
    const std::size_t size = static_cast<unsigned char>(input.front());
    input.remove_prefix(1);
    const fuzz::Exact piece(input.substr(0, size));
    input.remove_prefix(piece.view().size());
    const bool was_failed = engine.failed();
    const Engine::Received got = engine.receive(piece.view(), plaintext);
    fuzz::require(got.consumed <= piece.view().size(), "only what was there is consumed");
    fuzz::require(got.plaintext <= room, "plaintext stays in its room");
    fuzz::require(!engine.established(), "no handshake without keys");
    fuzz::require(!got.early && !engine.can_send(), "no early data without a ticket");
    fuzz::require(got.status != Engine::Status::need_input || got.consumed == piece.view().size(),
                  "all input is used up");
    fuzz::require((got.status == Engine::Status::failed) == engine.failed(), "failures are said");
    fuzz::require(!was_failed || got.consumed == 0, "a failure is final");
    fuzz::require(!engine.failed() || engine.failure(), "a failure has a cause");
    while (engine.take_output(output) != 0) {
    }
  }
  fuzz::require(engine.end_of_input() == Engine::Status::failed, "an end is no success");
}

bool over(const ControlRecord& record) {
  return record.kind != ControlRecord::Kind::ignored && record.kind != ControlRecord::Kind::data;
}

// A handshake record split in two is the same as in one, but for a KeyUpdate or an alert that is
// not whole.
void read_control(std::string_view input, Version version) {
  ControlParser whole(version);
  ControlParser split(version);
  while (input.size() >= 2) {
    const std::uint8_t type = static_cast<std::uint8_t>(20 + input[0] % 4);
    const std::size_t size = static_cast<unsigned char>(input[1]);
    input.remove_prefix(2);
    const fuzz::Exact record(input.substr(0, size));
    input.remove_prefix(record.view().size());
    const std::span<const unsigned char> bytes(
        reinterpret_cast<const unsigned char*>(record.view().data()), record.view().size());
    const ControlRecord one = whole.read(type, bytes);
    ControlRecord two{};
    const std::size_t at = type == 22 ? fuzz::split_of(record.view()) : 0;
    if (at != 0 && at != bytes.size()) {
      two = split.read(type, bytes.first(at));
      if (!over(two)) two = split.read(type, bytes.subspan(at));
    } else {
      two = split.read(type, bytes);
    }
    // A KeyUpdate at the end of the first piece has nothing behind it yet, so it is taken.
    const bool cut = two.kind == ControlRecord::Kind::key_update;
    fuzz::require(one == two || (cut && one.kind == ControlRecord::Kind::unexpected),
                  "control records mean the same in pieces");
    if (over(one) || over(two)) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view input(reinterpret_cast<const char*>(data), bytes);
  feed_server(input, 0, false);
  feed_server(input, 100, false);
  feed_server(input, 100, true);
  read_control(input, Version::tls13);
  read_control(input, Version::tls12);
  return 0;
}
