#include <utility>

#include "addresses.h"
#include "readers.h"

namespace ringside::config {
namespace {

constexpr std::uint32_t mebibyte = 1U << 20;

struct TimeoutKey {
  std::string_view key;
  Millis Timeouts::* member;
  Zero zero;
  bool in_site;  // the others count before the site is known, or belong to an upstream
};

constexpr TimeoutKey timeout_keys[] = {
    {"client_header", &Timeouts::client_header_ms, Zero::refused, false},
    {"keep_alive", &Timeouts::keep_alive_ms, Zero::refused, true},
    {"body_idle", &Timeouts::body_idle_ms, Zero::allowed, true},
    {"body_grace", &Timeouts::body_grace_ms, Zero::refused, true},
    {"connect", &Timeouts::connect_ms, Zero::refused, false},
    {"response_header", &Timeouts::response_header_ms, Zero::allowed, false},
    {"queue", &Timeouts::queue_ms, Zero::refused, false},
    {"tunnel_idle", &Timeouts::tunnel_idle_ms, Zero::allowed, true},
    {"linger", &Timeouts::linger_ms, Zero::allowed, true},
    {"drain", &Timeouts::drain_ms, Zero::refused, false},
};

constexpr std::string_view site_timeout_hint =
    "a site may set keep_alive, body_idle, body_grace, tunnel_idle and linger; an upstream has "
    "connect_timeout, "
    "response_header_timeout and queue_timeout";
constexpr std::string_view site_limit_hint =
    "a site may set body_size, body_rate, requests_per_connection and buffered_bytes; the others "
    "count before the site is known";

bool is_power_of_two(std::uint32_t number) {
  return (number & (number - 1)) == 0;
}

// The powers of two beside a number that is none.
std::string neighbours(std::uint32_t number) {
  std::uint32_t below = 1;
  while (below * 2 <= number)
    below *= 2;
  return join({std::to_string(below), " or ", std::to_string(below * 2)});
}

enum class Amount : std::uint8_t { count, bytes };

void read_power_of_two(Section& section, std::string_view key, Amount amount, std::uint32_t& out,
                       std::uint32_t least, std::uint32_t most) {
  const auto value = section.take(key);
  if (!value) return;
  std::uint32_t number = out;
  if (amount == Amount::bytes) {
    read_size(section, key, number, least, most);
  } else {
    read_count(section, key, number, least, most);
  }
  if (is_power_of_two(number)) {
    out = number;
    return;
  }
  value->complain(join({"must be a power of two, not ", std::to_string(number)}),
                  neighbours(number));
}

// Reports a key that exists in the global section but has no meaning in a site.
void refuse_in_site(Section& section, std::string_view key, std::string_view hint) {
  if (const auto value = section.take(key)) {
    value->complain(join({"cannot be set in ", section.title()}), std::string(hint));
  }
}

void read_body_limits(Section& section, Limits& limits) {
  read_size(section, "body_size", limits.body_bytes_max, std::uint64_t{1}, 1ULL << 50,
            Zero::allowed);
  read_rate(section, "body_rate", limits.body_rate_min, 1, 1024 * mebibyte);
  read_optional_count(section, "requests_per_connection", limits.requests_per_connection_max,
                      1'000'000'000, "none");
  read_size(section, "buffered_bytes", limits.buffered_bytes_max, 4096U, 1024 * mebibyte);
}

std::optional<Log::Access> access_format(const Value& value) {
  return choice<Log::Access>(value, {{"json", Log::Access::json},
                                     {"combined", Log::Access::combined},
                                     {"off", Log::Access::off}});
}

void read_access(const Value& value, Log& log) {
  if (!value.is_table()) {
    if (!value.is_text()) {
      value.complain_type(R"("json", "combined", "off", or a table of format and file)");
      return;
    }
    log.access = access_format(value).value_or(log.access);
    return;
  }
  Section section = value.section("access of [log]");
  if (const auto format = section.take("format")) {
    log.access = access_format(*format).value_or(log.access);
  }
  read_text(section, "file", log.access_file);
  section.finish();
}

}  // namespace

void read_server(Section& section, Server& server) {
  if (const auto rings = section.take("rings")) {
    if (rings->says("auto")) {
      server.rings = 0;
    } else if (const auto count = rings->integer(1, 256, "\"auto\"")) {
      server.rings = static_cast<std::uint32_t>(*count);
    }
  }
  read_power_of_two(section, "ring_entries", Amount::count, server.ring_entries, 64, 32'768);
  read_power_of_two(section, "buffers", Amount::count, server.buffers, 16, 32'768);
  read_power_of_two(section, "buffer_bytes", Amount::bytes, server.buffer_bytes, 1024, mebibyte);
  read_power_of_two(section, "large_buffers", Amount::count, server.large_buffers, 1, 4096);
  if (const auto name = section.take("name")) {
    if (auto text = name->text()) {
      // It is the pseudonym in Via too, which is a token (RFC 9110 §7.6.3).
      if (is_token(*text) && text->size() <= 64) {
        server.server_name = std::move(*text);
      } else {
        name->complain(join({"must be one word of at most 64 bytes, not ", quote(*text)}),
                       R"(like "ringside")");
      }
    }
  }
  if (const auto mover = section.take("body_mover")) {
    const std::vector<std::pair<std::string_view, BodyMover>> words = {
        {"auto", BodyMover::automatic}, {"copy", BodyMover::copy},
        {"large", BodyMover::large},    {"bundle", BodyMover::bundle},
        {"splice", BodyMover::splice},  {"zero_copy", BodyMover::zero_copy}};
    server.body_mover = choice<BodyMover>(*mover, words).value_or(server.body_mover);
  }
  read_flag(section, "batch_wait", server.batch_wait);
  read_size(section, "zero_copy_bytes_min", server.zero_copy_bytes_min, 1024U, 1024 * mebibyte);
  section.finish();
}

void read_timeouts(Section& section, Timeouts& timeouts) {
  for (const TimeoutKey& key : timeout_keys) {
    read_duration(section, key.key, timeouts.*key.member, 1, key.zero);
  }
  section.finish();
}

void read_site_timeouts(Section& section, Timeouts& timeouts) {
  for (const TimeoutKey& key : timeout_keys) {
    if (key.in_site) {
      read_duration(section, key.key, timeouts.*key.member, 1, key.zero);
    } else {
      refuse_in_site(section, key.key, site_timeout_hint);
    }
  }
  section.finish();
}

void read_limits(Section& section, Limits& limits) {
  read_size(section, "request_line", limits.request_line_bytes_max, 64U, mebibyte);
  read_size(section, "header_bytes", limits.header_bytes_max, 256U, mebibyte);
  read_count(section, "header_count", limits.header_count_max, 1, 10'000);
  read_optional_count(section, "connections", limits.connections_max, 10'000'000, "auto");
  read_optional_count(section, "connections_per_address", limits.connections_per_address_max,
                      10'000'000, "none");
  read_count(section, "streams_per_connection", limits.streams_per_connection_max, 1, 10'000);
  read_body_limits(section, limits);
  if (limits.request_line_bytes_max > limits.header_bytes_max) {
    // The default of the other one can be what it collides with.
    const auto line = section.take("request_line");
    const auto culprit = line ? line : section.take("header_bytes");
    if (culprit) {
      culprit->complain(join(
          {"does not fit: request_line (", std::to_string(limits.request_line_bytes_max),
           " bytes) is a part of header_bytes (", std::to_string(limits.header_bytes_max), ")"}));
    }
  }
  section.finish();
}

void read_site_limits(Section& section, Limits& limits) {
  for (std::string_view key : {"request_line", "header_bytes", "header_count", "connections",
                               "connections_per_address", "streams_per_connection"}) {
    refuse_in_site(section, key, site_limit_hint);
  }
  read_body_limits(section, limits);
  section.finish();
}

void read_log(Section& section, Log& log) {
  if (const auto level = section.take("level")) {
    log.level = choice<Log::Level>(*level, {{"debug", Log::Level::debug},
                                            {"info", Log::Level::info},
                                            {"warn", Log::Level::warn},
                                            {"error", Log::Level::error}})
                    .value_or(log.level);
  }
  read_text(section, "file", log.file);
  if (const auto access = section.take("access")) read_access(*access, log);
  section.finish();
}

void read_forwarding(Section& section, Forwarding& forwarding) {
  if (const auto value = section.take("trusted_proxies"); value && !value->elements().empty()) {
    for (const auto& [text, element] : read_texts(*value)) {
      auto range = parse_range(text);
      if (range) {
        forwarding.trusted_proxies.push_back(std::move(*range));
      } else {
        element.complain(range.error());
      }
    }
  }
  read_flag(section, "x_forwarded", forwarding.x_forwarded);
  read_flag(section, "forwarded", forwarding.forwarded);
  read_flag(section, "via", forwarding.via);
  read_flag(section, "request_id", forwarding.request_id);
  read_flag(section, "underscore_names", forwarding.underscore_names);
  section.finish();
}

}  // namespace ringside::config
