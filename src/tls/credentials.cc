#include "ringside/tls/credentials.h"

#include <openssl/err.h>

#include <algorithm>

#include "ringside/tls/server_context.h"

#include "chain.h"
#include "name_index.h"
#include "ocsp_question.h"
#include "openssl.h"
#include "pem_file.h"
#include "staple.h"

namespace ringside::tls {
namespace {

class Loading {
 public:
  Loading(LoadedCredentials& out, UnixSeconds now) : out_(out), now_(now) {}

  void load(Credentials& credentials) {
    for (const config::TlsCertificate& files : credentials.config.certificates)
      load_certificate(files, credentials);
    if (!credentials.config.client_ca.empty()) load_client_ca(credentials);
    for (std::size_t i = 0; i < credentials.certificates.size(); ++i)
      look_for_issuer(credentials.certificates[i], fetches_[i]);
  }

 private:
  void load_certificate(const config::TlsCertificate& files, Credentials& credentials) {
    auto certificates = read_certificates(files.cert);
    auto key = read_key(files.key);
    if (!certificates) out_.errors.push_back(std::move(certificates.error()));
    if (!key) out_.errors.push_back(std::move(key.error()));
    if (!certificates || !key) return;
    const auto chain = order_chain(std::move(*certificates), key->get(), files.cert, out_.warnings);
    if (chain.empty()) {
      out_.errors.push_back(
          join({"the key in ", files.key, " does not belong to the certificate in ", files.cert}));
      return;
    }
    check_dates(chain, files.cert, now_, out_.warnings);
    if (world_readable(files.key)) {
      out_.warnings.push_back(
          join({files.key, ": every user of this machine can read the private key"}));
    }
    Certificate certificate;
    certificate.file = files.cert;
    certificate.key_type = EVP_PKEY_get_base_id(key->get());
    certificate.names = names_of(chain.front().get());
    certificate.not_after = seconds_of(X509_get0_notAfter(chain.front().get()));
    for (const X509Ptr& each : chain)
      certificate.chain.push_back(der_of(each.get()));
    if (!keep_key(key->get(), certificate)) {
      out_.errors.push_back(join({files.key, ": ", take_reason()}));
      return;
    }
    if (!files.ocsp.empty()) load_staple(files.ocsp, chain.front().get(), certificate);
    credentials.certificates.push_back(std::move(certificate));
    fetches_.push_back(files.ocsp.empty() && credentials.config.ocsp == config::Ocsp::fetch);
  }

  static bool keep_key(const EVP_PKEY* key, Certificate& certificate) {
    // By way of PKCS #8, which says of itself what type of key it is.
    using Pkcs8 = std::unique_ptr<PKCS8_PRIV_KEY_INFO, Deleter<PKCS8_PRIV_KEY_INFO_free>>;
    const Pkcs8 info(EVP_PKEY2PKCS8(key));
    unsigned char* bytes = nullptr;
    const int size = info ? i2d_PKCS8_PRIV_KEY_INFO(info.get(), &bytes) : -1;
    if (size <= 0) return false;
    certificate.key = SecretBytes({bytes, bytes + size});
    OPENSSL_clear_free(bytes, static_cast<std::size_t>(size));
    return true;
  }

  void load_staple(const std::string& file, const X509* own, Certificate& certificate) {
    auto staple = read_staple(file, own, now_);
    if (staple) {
      certificate.staple = std::make_shared<StapleSlot>();
      certificate.staple->put(std::make_shared<const Staple>(std::move(*staple)));
    } else {
      out_.warnings.push_back(std::move(staple.error()));
    }
  }

  void load_client_ca(Credentials& credentials) {
    auto authorities = read_certificates(credentials.config.client_ca);
    if (!authorities) {
      out_.errors.push_back(std::move(authorities.error()));
      return;
    }
    check_dates(*authorities, credentials.config.client_ca, now_, out_.warnings);
    for (const X509Ptr& each : *authorities)
      credentials.client_ca.push_back(der_of(each.get()));
    authorities_ = std::move(*authorities);
  }

  // Clients have the roots that they trust, so a root need not be sent. Which those are is known
  // here of those that most have, and of those whose certificates the clients themselves have.
  void look_for_issuer(Certificate& certificate, bool fetch) {
    const X509Ptr own = certificate_of(certificate.chain.front(), nullptr);
    if (!own) return;
    if (self_signed(own.get())) {
      if (fetch) warn_of_no_ocsp(certificate, "the certificate is its own issuer");
      return;
    }
    const X509Ptr issuer = certificate.chain.size() > 1
                               ? certificate_of(certificate.chain[1], nullptr)
                               : issuing_root(own.get(), authorities_);
    if (!issuer) {
      out_.warnings.push_back(
          join({certificate.file, ": the certificate of the issuer, ",
                name_text(X509_get_issuer_name(own.get())),
                ", is missing; many clients will not trust this one without it",
                fetch ? ", and nobody can be asked for an OCSP response" : ""}));
    } else if (fetch) {
      ask_about(certificate, own.get(), issuer.get());
    }
  }

  void ask_about(Certificate& certificate, X509* own, X509* issuer) {
    auto question = make_ocsp_question(own, issuer);
    if (question) {
      certificate.ocsp_question = std::move(*question);
      certificate.staple = std::make_shared<StapleSlot>();
    } else {
      warn_of_no_ocsp(certificate, question.error());
    }
  }

  void warn_of_no_ocsp(const Certificate& certificate, std::string_view why) {
    out_.warnings.push_back(join({certificate.file, ": no OCSP response can be fetched: ", why}));
  }

  LoadedCredentials& out_;
  UnixSeconds now_;
  std::vector<X509Ptr> authorities_;  // of clients
  std::vector<bool> fetches_;         // of each certificate: its OCSP response is to be fetched
};

// The digest of the entry's name and of all that decides who may come in.
std::vector<unsigned char> binding_of(const Credentials& credentials) {
  std::vector<unsigned char> text;
  auto add = [&](const auto& part) {
    // With its size, so that no two lists of parts make the same text.
    const std::string size = std::to_string(part.size()) + ":";
    text.insert(text.end(), size.begin(), size.end());
    text.insert(text.end(), part.begin(), part.end());
  };
  add(credentials.config.name);
  text.push_back(static_cast<unsigned char>(credentials.config.client_certificate));
  for (const Der& authority : credentials.client_ca)
    add(authority);
  std::vector<unsigned char> digest(32);
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    digest.clear();
  }
  return digest;
}

void check_together(const std::shared_ptr<const Credentials>& credentials, LoadedCredentials& out) {
  for (std::uint32_t unused : NameIndex(credentials->certificates).unused()) {
    out.warnings.push_back(join({credentials->certificates[unused].file,
                                 ": never used, since certificates before it have all of its names "
                                 "and the same type of key"}));
  }
  // What only OpenSSL can judge: algorithms, the strength of keys.
  if (auto tried = ServerContext::make(credentials, nullptr); !tried) {
    out.errors.push_back(std::move(tried.error()));
  }
}

}  // namespace

LoadedCredentials load_credentials(const config::Tls& config, UnixSeconds now) {
  ERR_clear_error();
  LoadedCredentials out;
  auto credentials = std::make_shared<Credentials>();
  credentials->config = config;
  Loading(out, now).load(*credentials);
  if (out.errors.empty() && credentials->certificates.empty()) {
    out.errors.push_back(join({"[tls.", config.name, "] has no certificates"}));
  }
  if (!out.errors.empty()) return out;
  credentials->session_binding = binding_of(*credentials);
  if (credentials->session_binding.empty()) {
    out.errors.push_back(join({"[tls.", config.name, "]: ", take_reason()}));
    return out;
  }
  check_together(credentials, out);
  if (out.errors.empty()) out.credentials = std::move(credentials);
  return out;
}

std::vector<std::string> files_of(const config::Tls& config) {
  std::vector<std::string> files;
  auto add = [&](const std::string& file) {
    if (!file.empty() && std::find(files.begin(), files.end(), file) == files.end())
      files.push_back(file);
  };
  for (const config::TlsCertificate& certificate : config.certificates) {
    add(certificate.cert);
    add(certificate.key);
    add(certificate.ocsp);
  }
  add(config.client_ca);
  return files;
}

}  // namespace ringside::tls
