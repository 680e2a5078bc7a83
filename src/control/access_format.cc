#include "access_format.h"

#include <charconv>
#include <cstdint>
#include <string_view>

#include "escape.h"

namespace ringside::control {
namespace {

using proxy::AccessRecord;

std::string_view protocol_of(http::Version version) {
  switch (version) {
    case http::Version::http10:
      return "HTTP/1.0";
    case http::Version::http11:
      return "HTTP/1.1";
    case http::Version::http2:
      return "HTTP/2.0";
  }
  return "";
}

void append_number(std::string& out, std::uint64_t value) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, static_cast<std::size_t>(end - digits));
}

void append_text_field(std::string& out, std::string_view key, std::string_view text) {
  out += key;
  control::append_json(out, text);
  out += '"';
}

void append_number_field(std::string& out, std::string_view key, std::uint64_t value) {
  out += key;
  append_number(out, value);
}

// Milliseconds with three decimals, or null.
void append_time_field(std::string& out, std::string_view key, std::uint64_t ns) {
  out += key;
  if (ns == AccessRecord::never) {
    out += "null";
    return;
  }
  const std::uint64_t us = ns / 1000;
  const auto rest = static_cast<unsigned>(us % 1000);
  append_number(out, us / 1000);
  const char decimals[] = {'.', static_cast<char>('0' + rest / 100),
                           static_cast<char>('0' + rest / 10 % 10),
                           static_cast<char>('0' + rest % 10)};
  out.append(decimals, sizeof decimals);
}

void append_or_dash(std::string& out, std::string_view text) {
  if (text.empty()) {
    out += '-';
  } else {
    control::append_combined(out, text);
  }
}

void append_status(std::string& out, const AccessRecord& record) {
  if (record.status != 0) {
    append_number(out, record.status);
  } else {
    out += record.end.who == base::Origin::client ? "499" : "000";
  }
}

}  // namespace

void AccessFormat::append_json(std::string& out, const AccessRecord& record) {
  char end[64];
  const std::size_t end_length = proxy::write(record.end, end);
  out += R"({"time":")";
  timestamp_.append_rfc3339(out, record.start_realtime_ns);
  append_text_field(out, R"(","client":")", record.client_address);
  append_number_field(out, R"(,"client_port":)", record.client_port);
  append_text_field(out, R"(,"method":")", record.method);
  append_text_field(out, R"(,"target":")", record.target);
  append_text_field(out, R"(,"protocol":")", protocol_of(record.version));
  append_text_field(out, R"(,"host":")", record.host);
  append_number_field(out, R"(,"status":)", record.status);
  if (!record.grpc_status.empty())
    append_text_field(out, R"(,"grpc_status":")", record.grpc_status);
  append_number_field(out, R"(,"request_bytes":)", record.request_bytes);
  append_number_field(out, R"(,"response_bytes":)", record.response_bytes);
  append_number_field(out, R"(,"body_bytes":)", record.response_body_bytes);
  append_text_field(out, R"(,"mover":")", record.mover);
  append_number_field(out, R"(,"spliced_bytes":)", record.spliced_bytes);
  append_number_field(out, R"(,"zero_copy_bytes":)", record.zero_copy_bytes);
  append_text_field(out, R"(,"upstream":")", record.upstream);
  append_text_field(out, R"(,"server":")", record.server);
  append_number_field(out, R"(,"tries":)", record.tries);
  out += record.reused ? R"(,"reused":true)" : R"(,"reused":false)";
  append_time_field(out, R"(,"connect_ms":)", record.connected_ns);
  append_time_field(out, R"(,"first_byte_ms":)", record.first_byte_ns);
  append_time_field(out, R"(,"total_ms":)", record.total_ns);
  append_text_field(out, R"(,"request_id":")", record.request_id);
  append_text_field(out, R"(,"user_agent":")", record.user_agent);
  append_text_field(out, R"(,"referer":")", record.referer);
  append_text_field(out, R"(,"tls":")", record.tls_version);
  append_text_field(out, R"(,"cipher":")", record.tls_cipher);
  append_text_field(out, R"(,"tls_client":")", record.tls_client);
  append_text_field(out, R"(,"listener":")", record.listener);
  append_text_field(out, R"(,"end":")", {end, end_length});
  out += "}\n";
}

void AccessFormat::append_combined(std::string& out, const AccessRecord& record) {
  append_or_dash(out, record.client_address);
  out += " - - [";
  timestamp_.append_combined(out, record.start_realtime_ns);
  out += "] \"";
  if (record.method.empty()) {
    out += '-';
  } else {
    control::append_combined(out, record.method);
    out += ' ';
    control::append_combined(out, record.target);
    out += ' ';
    out += protocol_of(record.version);
  }
  out += "\" ";
  append_status(out, record);
  out += ' ';
  append_number(out, record.response_body_bytes);
  out += " \"";
  append_or_dash(out, record.referer);
  out += "\" \"";
  append_or_dash(out, record.user_agent);
  out += "\"\n";
}

}  // namespace ringside::control
