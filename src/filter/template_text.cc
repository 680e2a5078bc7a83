#include "template_text.h"

#include <cstring>

namespace ringside::filter {
namespace {

// "[::1]:80" and "a.test:80" without the port.
std::string_view without_port(std::string_view authority) {
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    return close == std::string_view::npos ? authority : authority.substr(0, close + 1);
  }
  return authority.substr(0, authority.rfind(':'));
}

std::string_view port_text(std::uint16_t port, VariableText& out) {
  if (port == 0) return {};  // unix sockets have none
  const auto end = std::to_chars(out.digits, out.digits + sizeof out.digits, port).ptr;
  return {out.digits, static_cast<std::size_t>(end - out.digits)};
}

std::string_view header_value(const RequestFacts& facts, std::string_view name) {
  if (facts.request_fields == nullptr) return {};
  const http::Field* field = facts.request_fields->find(name);
  return field == nullptr ? std::string_view() : field->value;
}

}  // namespace

void variable_text(const config::TemplatePart& part, const RequestFacts& facts, VariableText& out) {
  using config::Variable;
  switch (part.variable) {
    case Variable::none:
      out.parts[0] = part.literal;
      break;
    case Variable::client_address:
      out.parts[0] = facts.client_address;
      break;
    case Variable::client_port:
      out.parts[0] = port_text(facts.client_port, out);
      break;
    case Variable::host:
      out.parts[0] = facts.host;
      break;
    case Variable::hostname:
      out.parts[0] = without_port(facts.host);
      break;
    case Variable::method:
      out.parts[0] = facts.method;
      break;
    case Variable::path:
      out.parts[0] = facts.path;
      break;
    case Variable::query:
      out.parts[0] = facts.query;
      break;
    case Variable::uri:
      out.parts[0] = facts.path;
      if (facts.has_query) out.parts[1] = "?";
      out.parts[2] = facts.query;
      break;
    case Variable::scheme:
      out.parts[0] = facts.scheme;
      break;
    case Variable::request_id:
      out.parts[0] = facts.request_id;
      break;
    case Variable::server_name:
      out.parts[0] = facts.server_name;
      break;
    case Variable::listener:
      out.parts[0] = facts.listener;
      break;
    case Variable::request_header:
      out.parts[0] = header_value(facts, part.argument);
      break;
    case Variable::tls_client_verified:
      out.parts[0] = facts.tls == nullptr ? "false" : facts.tls->value(part.variable);
      break;
    case Variable::tls_version:
    case Variable::tls_cipher:
    case Variable::tls_sni:
    case Variable::tls_alpn:
    case Variable::tls_client_subject:
    case Variable::tls_client_cn:
    case Variable::tls_client_issuer:
    case Variable::tls_client_serial:
    case Variable::tls_client_fingerprint:
    case Variable::tls_client_san:
    case Variable::tls_client_dns:
    case Variable::tls_client_uri:
    case Variable::tls_client_email:
    case Variable::tls_client_cert:
      if (facts.tls != nullptr) out.parts[0] = facts.tls->value(part.variable);
      break;
  }
}

std::string_view expand(const config::Template& text, const RequestFacts& facts,
                        base::Arena& arena) {
  std::size_t bytes = 0;
  template_pieces(text, facts, [&](std::string_view piece) { bytes += piece.size(); });
  char* const begin = arena.allocate_array<char>(bytes == 0 ? 1 : bytes);
  if (begin == nullptr) return {};
  char* at = begin;
  template_pieces(text, facts, [&](std::string_view piece) {
    std::memcpy(at, piece.data(), piece.size());
    at += piece.size();
  });
  return {begin, bytes};
}

}  // namespace ringside::filter
