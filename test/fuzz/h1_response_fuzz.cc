// Response heads. The first byte chooses the method of the request. Oracles: oracle.h; parse ->
// write -> parse agrees; every fault is a 502.
#include "ringside/http/writer.h"

#include "oracle.h"

namespace {

using namespace ringside;
using namespace ringside::http;

constexpr HeadLimits usual_limits;
constexpr HeadLimits tight_limits{.line_bytes_max = 20, .head_bytes_max = 100, .fields_max = 2};

void check_head(const ResponseHead& head, Method method) {
  fuzz::check_fields(head.fields);
  fuzz::require(head.status >= 100 && head.status <= 599, "a status is in its range");
  bool bodiless =
      method == Method::head || head.status < 200 || head.status == 204 || head.status == 304;
  fuzz::require(!bodiless || head.framing.kind == Framing::Kind::none, "no body where none may be");
  fuzz::require(head.framing.kind != Framing::Kind::until_close || !head.keep_alive,
                "a body that ends with the connection ends it");
}

void check_round_trip(ResponseHead& head, Method method, base::Arena& arena) {
  if (head.version != Version::http11) return;
  HeadWriter writer(arena, 16);
  if (head.reason.empty()) head.reason = reason_phrase(head.status);
  writer.status_line(head.status, head.reason);
  for (const Field& field : head.fields)
    writer.field(field.name, field.value);
  std::string_view bytes = writer.finish();
  if (bytes.size() > usual_limits.head_bytes_max) return;
  ResponseParser again(arena, usual_limits, method);
  fuzz::require(again.parse(bytes) == ParseState::done && again.consumed() == bytes.size(),
                "written heads parse");
  std::ostringstream first;
  std::ostringstream second;
  test::describe(first, head);
  test::describe(second, again.head());
  fuzz::require_equal(first.str(), second.str(), "what was written reads differently");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  std::string_view input(reinterpret_cast<const char*>(data), bytes);
  if (input.empty()) return 0;
  constexpr Method methods[] = {Method::get, Method::head, Method::connect};
  Method method = methods[static_cast<std::uint8_t>(input[0]) % 3];
  input.remove_prefix(1);
  fuzz::agreed_outcome(
      input, [method](base::Arena& arena) { return ResponseParser(arena, tight_limits, method); });
  fuzz::agreed_outcome(
      input, [method](base::Arena& arena) { return ResponseParser(arena, usual_limits, method); });
  base::ChunkPool pool;
  base::Arena arena(pool);
  ResponseParser parser(arena, usual_limits, method);
  ParseState state = parser.parse(input);
  if (state == ParseState::failed) fuzz::require(parser.fault().status == 502, "faults are 502");
  if (state == ParseState::done) {
    check_head(parser.head(), method);
    check_round_trip(parser.head(), method, arena);
  }
  return 0;
}
