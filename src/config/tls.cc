#include <algorithm>

#include "readers.h"

namespace ringside::config {
namespace {

// RFC 8446 §4.6.1: a ticket is good for seven days at most.
constexpr Millis ticket_rotation_ms_max = 7ULL * 24 * 3'600'000;
constexpr Millis ticket_rotation_ms_min = 60'000;
// Less holds no request; more waits in memory for clients that nobody has seen yet.
constexpr std::uint32_t early_data_bytes_min = 1024;
constexpr std::uint32_t early_data_bytes_max = 65'536;

// TLS 1.0 and 1.1 are known, so that the message can say why they are refused.
void read_version(Section& section, std::string_view key, std::optional<TlsVersion>& out) {
  const auto value = section.take(key);
  if (!value) return;
  if (value->says("1.0") || value->says("1.1")) {
    return value->complain("must be \"1.2\" or \"1.3\": TLS 1.0 and 1.1 are no longer secure",
                           "RFC 8996");
  }
  const auto version =
      choice<TlsVersion>(*value, {{"1.2", TlsVersion::tls12}, {"1.3", TlsVersion::tls13}});
  if (version) out = version;
}

void read_versions(Section& section, std::optional<TlsVersion>& least,
                   std::optional<TlsVersion>& most) {
  read_version(section, "min_version", least);
  read_version(section, "max_version", most);
  if (least == TlsVersion::tls13 && most == TlsVersion::tls12) {
    section.take("min_version")->complain("\"1.3\" is above max_version, \"1.2\"");
  }
}

// Names of ciphers and groups. Whether there are such is known to OpenSSL alone, which is asked
// when the certificates are loaded.
void read_algorithms(Section& section, std::string_view key, std::vector<std::string>& out) {
  const auto value = section.take(key);
  if (!value) return;
  for (auto& [text, element] : read_texts(*value)) {
    if (text.find_first_of(":, ") != std::string::npos) {
      element.complain(join({"has several names in one string: ", quote(text)}),
                       R"(write a list, ["A", "B"])");
    } else if (!std::all_of(text.begin(), text.end(), [](char c) {
                 return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                        (c >= 'A' && c <= 'Z') || std::string_view("-_+!@=.").contains(c);
               })) {
      element.complain(join({"has ", quote(text), ", which cannot be a name"}));
    } else {
      out.push_back(text);
    }
  }
}

void read_ktls(Section& section, KernelTls& out) {
  const auto value = section.take("ktls");
  if (!value) return;
  out = choice<KernelTls>(*value, {{"auto", KernelTls::automatic},
                                   {"off", KernelTls::off},
                                   {"require", KernelTls::require}})
            .value_or(out);
}

void read_ocsp(Section& section, Tls& tls) {
  const auto value = section.take("ocsp");
  if (!value) return;
  tls.ocsp = choice<Ocsp>(*value, {{"off", Ocsp::off}, {"fetch", Ocsp::fetch}}).value_or(tls.ocsp);
  const bool has_use = std::ranges::any_of(
      tls.certificates, [](const TlsCertificate& each) { return each.ocsp.empty(); });
  if (tls.ocsp == Ocsp::fetch && !has_use && !tls.certificates.empty())
    value->warn("fetches nothing, since every certificate has an OCSP file");
}

void read_certificate(const Value& value, const std::string& title, Tls& tls) {
  if (!value.is_table()) return value.complain_type("a list of tables of cert and key");
  Section section = value.section(join({"certificates of ", title}));
  TlsCertificate certificate;
  const bool has_cert = section.take("cert").has_value();
  const bool has_key = section.take("key").has_value();
  read_path(section, "cert", certificate.cert);
  read_path(section, "key", certificate.key);
  read_path(section, "ocsp", certificate.ocsp);
  section.finish();
  if (!has_cert || !has_key) {
    value.complain(join({"has an entry without ", has_cert ? "key" : "cert"}),
                   R"(like { cert = "site.pem", key = "site.key" })");
    return;
  }
  tls.certificates.push_back(std::move(certificate));
}

void read_certificates(Section& section, const Place& place, Tls& tls) {
  const auto value = section.take("certificates");
  if (!value || (value->is_array() && value->elements().empty())) {
    section.context().reporter.problem(
        value ? value->place() : place, join({section.title(), " has no certificates"}),
        R"(like certificates = [{ cert = "site.pem", key = "site.key" }])");
    return;
  }
  for (const Value& element : value->elements())
    read_certificate(element, section.title(), tls);
}

void read_client_certificate(Section& section, Tls& tls) {
  read_path(section, "client_ca", tls.client_ca);
  const auto ca = section.take("client_ca");
  const auto value = section.take("client_certificate");
  if (!value) {
    if (ca) {
      ca->complain("does nothing without client_certificate",
                   R"(client_certificate = "required" or "optional")");
    }
    return;
  }
  const auto rule = choice<ClientCertificate>(*value, {{"off", ClientCertificate::off},
                                                       {"optional", ClientCertificate::optional},
                                                       {"required", ClientCertificate::required}});
  if (!rule) return;
  tls.client_certificate = *rule;
  if (*rule != ClientCertificate::off && !ca) {
    value->complain("needs client_ca, the authorities that client certificates must come from",
                    R"(like client_ca = "clients-ca.pem")");
  } else if (*rule == ClientCertificate::off && ca) {
    ca->warn("is not used, since client_certificate is \"off\"");
    tls.client_ca.clear();
  }
}

void read_tickets(Section& section, Tls& tls) {
  read_flag(section, "tickets", tls.tickets);
  read_path(section, "ticket_keys_file", tls.ticket_keys_file);
  read_duration(section, "ticket_rotation", tls.ticket_rotation_ms, ticket_rotation_ms_min,
                Zero::refused);
  const auto file = section.take("ticket_keys_file");
  const auto rotation = section.take("ticket_rotation");
  if (rotation && tls.ticket_rotation_ms > ticket_rotation_ms_max) {
    rotation->complain("is too long: tickets are good for seven days at most", "at most \"168h\"");
  }
  if (!tls.tickets) {
    for (const auto& value : {file, rotation}) {
      if (value) value->complain("does nothing with tickets = false");
    }
  } else if (file && rotation) {
    rotation->complain("does nothing with ticket_keys_file",
                       "whoever writes that file rotates its keys");
  }
}

void read_early_data(Section& section, Tls& tls) {
  read_flag(section, "early_data", tls.early_data);
  read_size(section, "early_data_max", tls.early_data_bytes_max, early_data_bytes_min,
            early_data_bytes_max);
  const auto early = section.take("early_data");
  const auto most = section.take("early_data_max");
  if (most && !tls.early_data) most->complain("does nothing without early_data = true");
  if (!early || !tls.early_data) return;
  if (!tls.tickets) early->complain("needs tickets: it comes with a session that is resumed");
  if (tls.max_version == TlsVersion::tls12)
    early->complain("needs TLS 1.3, and max_version is \"1.2\"");
}

void warn_of_unused_ciphers(Section& section, const Tls& tls) {
  const bool tls13_alone =
      tls.min_version ? *tls.min_version == TlsVersion::tls13 : tls.policy == TlsPolicy::modern;
  const auto ciphers = section.take("ciphers");
  if (ciphers && tls13_alone) {
    ciphers->warn("is for TLS 1.2, which is not in use here", "ciphersuites is for TLS 1.3");
  }
  const auto suites = section.take("ciphersuites");
  if (suites && tls.max_version == TlsVersion::tls12) {
    suites->warn("is for TLS 1.3, which is not in use here", "ciphers is for TLS 1.2");
  }
}

void read_tls(const Value& value, Draft& draft) {
  Tls tls;
  tls.name = value.name();
  Section section = value.section(join({"[tls.", value.name(), "]"}));
  read_certificates(section, value.place(), tls);
  if (const auto policy = section.take("policy")) {
    tls.policy = choice<TlsPolicy>(*policy, {{"intermediate", TlsPolicy::intermediate},
                                             {"modern", TlsPolicy::modern}})
                     .value_or(tls.policy);
  }
  read_versions(section, tls.min_version, tls.max_version);
  if (tls.policy == TlsPolicy::modern && !tls.min_version && tls.max_version == TlsVersion::tls12) {
    section.take("max_version")->complain("\"1.2\" leaves nothing of policy = \"modern\"");
  }
  read_algorithms(section, "ciphers", tls.ciphers);
  read_algorithms(section, "ciphersuites", tls.ciphersuites);
  read_algorithms(section, "groups", tls.groups);
  warn_of_unused_ciphers(section, tls);
  read_client_certificate(section, tls);
  read_tickets(section, tls);
  read_early_data(section, tls);
  read_ktls(section, tls.ktls);
  read_ocsp(section, tls);
  section.finish();
  draft.snapshot.tls.push_back(std::move(tls));
  draft.places.tls.push_back(value.place());
}

}  // namespace

void read_upstream_tls(Section& section, UpstreamTls& tls) {
  read_flag(section, "verify", tls.verify);
  read_path(section, "ca", tls.ca);
  read_text(section, "server_name", tls.server_name);
  read_path(section, "cert", tls.cert);
  read_path(section, "key", tls.key);
  read_versions(section, tls.min_version, tls.max_version);
  read_ktls(section, tls.ktls);
  const auto cert = section.take("cert");
  const auto key = section.take("key");
  if (cert && !key) cert->complain("does nothing without key");
  if (key && !cert) key->complain("does nothing without cert");
  if (const auto name = section.take("server_name"); name && tls.server_name.empty()) {
    name->complain("is empty", "leave it out to take the server's own");
  }
  if (tls.verify) {
    section.finish();
    return;
  }
  if (const auto ca = section.take("ca")) ca->complain("does nothing with verify = false");
  section.take("verify")->warn(
      "is false: whoever is between here and the servers can read and change everything");
  section.finish();
}

void read_tls_entries(Section& names, Draft& draft) {
  for (const Named& entry : names.all()) {
    if (!check_name(entry, "tls")) continue;
    const auto index = static_cast<std::uint32_t>(draft.snapshot.tls.size());
    const auto [known, fresh] = draft.tls_names.emplace(entry.value.name(), index);
    if (fresh) {
      read_tls(entry.value, draft);
      continue;
    }
    draft.context.reporter.problem(entry.value.place(),
                                   join({"[tls.", entry.value.name(), "] is there already, at ",
                                         short_text(draft.places.tls[known->second])}));
  }
}

}  // namespace ringside::config
