// Request heads. Oracles: oracle.h; parse -> write -> parse agrees; paths normalise to a fixed
// point.
#include "ringside/http/uri.h"
#include "ringside/http/writer.h"

#include "oracle.h"

namespace {

using namespace ringside;
using namespace ringside::http;

constexpr HeadLimits usual_limits;
// Small enough that the fuzzer reaches them.
constexpr HeadLimits tight_limits{.line_bytes_max = 40, .head_bytes_max = 120, .fields_max = 3};

void check_head(const RequestHead& head, base::Arena& arena) {
  fuzz::check_fields(head.fields);
  const Field* host = head.fields.find(FieldId::host);
  fuzz::require(host != nullptr || head.version == Version::http10, "HTTP/1.1 has a Host");
  if (!head.authority.empty()) {
    auto authority = parse_authority(head.authority);
    fuzz::require(authority && authority->host == head.host, "host is that of authority");
  }
  fuzz::require(head.framing.kind != Framing::Kind::until_close, "a request has a known length");
  if (auto once = normalise_path(head.path, arena)) {
    auto twice = normalise_path(*once, arena);
    fuzz::require(twice && *twice == *once, "a normal path is a fixed point");
  }
}

// Every field goes out as it came. HTTP/1.0 is left out, since the writer says HTTP/1.1.
void check_round_trip(RequestHead& head, base::Arena& arena) {
  if (head.version != Version::http11) return;
  HeadWriter writer(arena, 16);
  writer.request_line(head.method_text, head.target);
  for (const Field& field : head.fields)
    writer.field(field.name, field.value);
  std::string_view bytes = writer.finish();
  RequestParser again(arena, usual_limits);
  ParseState state = again.parse(bytes);
  // Blanks around values were dropped and one was added: a head at the limit may have grown past
  // it.
  if (bytes.size() > usual_limits.head_bytes_max) return;
  fuzz::require(state == ParseState::done && again.consumed() == bytes.size(),
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
  fuzz::agreed_outcome(input,
                       [](base::Arena& arena) { return RequestParser(arena, tight_limits); });
  fuzz::agreed_outcome(input,
                       [](base::Arena& arena) { return RequestParser(arena, usual_limits); });
  base::ChunkPool pool;
  base::Arena arena(pool);
  RequestParser parser(arena, usual_limits);
  if (parser.parse(input) == ParseState::done) {
    check_head(parser.head(), arena);
    check_round_trip(parser.head(), arena);
  }
  return 0;
}
