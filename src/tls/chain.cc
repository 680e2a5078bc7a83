#include "chain.h"

#include <openssl/err.h>

#include <algorithm>
#include <ctime>

#include "ringside/base/text.h"

namespace ringside::tls {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    c = base::to_lower(c);
  return out;
}

std::string subject_of(const X509* certificate) {
  return name_text(X509_get_subject_name(certificate));
}

std::string_view text_of(const ASN1_STRING* string) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)),
          static_cast<std::size_t>(ASN1_STRING_length(string))};
}

void add_name(std::vector<std::string>& names, std::string_view name) {
  // A NUL inside would let one name pass for another.
  if (name.empty() || name.contains('\0')) return;
  std::string wanted = lower(name);
  if (std::find(names.begin(), names.end(), wanted) == names.end())
    names.push_back(std::move(wanted));
}

}  // namespace

bool self_signed(X509* certificate) {
  return X509_self_signed(certificate, 0) == 1;
}

std::vector<X509Ptr> order_chain(std::vector<X509Ptr> certificates, const EVP_PKEY* key,
                                 const std::string& file, std::vector<std::string>& warnings) {
  const auto own =
      std::find_if(certificates.begin(), certificates.end(), [&](const X509Ptr& certificate) {
        return EVP_PKEY_eq(X509_get0_pubkey(certificate.get()), key) == 1;
      });
  if (own == certificates.end()) return {};
  std::vector<X509Ptr> chain;
  bool in_order = true;
  auto move_over = [&](std::vector<X509Ptr>::iterator from) {
    in_order = in_order && from == certificates.begin();
    chain.push_back(std::move(*from));
    certificates.erase(from);
  };
  move_over(own);
  while (!self_signed(chain.back().get())) {
    const auto issuer =
        std::find_if(certificates.begin(), certificates.end(), [&](const X509Ptr& candidate) {
          return X509_check_issued(candidate.get(), chain.back().get()) == X509_V_OK;
        });
    if (issuer == certificates.end()) break;
    move_over(issuer);
  }
  if (!in_order) {
    warnings.push_back(join({file,
                             ": the certificates are not in the order of their chain; they "
                             "are sent in the right one"}));
  }
  for (const X509Ptr& other : certificates) {
    warnings.push_back(
        join({file, ": ", subject_of(other.get()), " is no part of the chain and is not sent"}));
  }
  return chain;
}

X509Ptr issuing_root(X509* certificate, const std::vector<X509Ptr>& known) {
  const StorePtr store(X509_STORE_new());
  if (!store) return nullptr;
  for (const X509Ptr& each : known)
    X509_STORE_add_cert(store.get(), each.get());
  // Its own files may be missing: then there is nothing to be found in them.
  X509_STORE_set_default_paths(store.get());
  using Search = std::unique_ptr<X509_STORE_CTX, Deleter<X509_STORE_CTX_free>>;
  const Search search(X509_STORE_CTX_new());
  X509Ptr found;
  if (search && X509_STORE_CTX_init(search.get(), store.get(), certificate, nullptr) == 1) {
    const CertificatesPtr candidates(
        X509_STORE_CTX_get1_certs(search.get(), X509_get_issuer_name(certificate)));
    // A name is anybody's to take, so the signatures count.
    for (int i = 0; !found && i < sk_X509_num(candidates.get()); ++i) {
      X509* candidate = sk_X509_value(candidates.get(), i);
      if (X509_check_issued(candidate, certificate) == X509_V_OK &&
          X509_self_signed(candidate, 1) == 1 &&
          X509_verify(certificate, X509_get0_pubkey(candidate)) == 1) {
        X509_up_ref(candidate);
        found.reset(candidate);
      }
    }
  }
  ERR_clear_error();
  return found;
}

void check_dates(const std::vector<X509Ptr>& chain, const std::string& file, UnixSeconds now,
                 std::vector<std::string>& warnings) {
  for (const X509Ptr& certificate : chain) {
    auto when = static_cast<std::time_t>(now);
    const ASN1_TIME* from = X509_get0_notBefore(certificate.get());
    const ASN1_TIME* until = X509_get0_notAfter(certificate.get());
    if (X509_cmp_time(until, &when) < 0) {
      warnings.push_back(
          join({file, ": ", subject_of(certificate.get()), " expired on ", time_text(until)}));
    } else if (X509_cmp_time(from, &when) > 0) {
      warnings.push_back(join(
          {file, ": ", subject_of(certificate.get()), " is not valid before ", time_text(from)}));
    }
  }
}

std::vector<std::string> names_of(X509* certificate) {
  std::vector<std::string> names;
  const NamesPtr alternatives(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (alternatives) {
    for (int i = 0; i < sk_GENERAL_NAME_num(alternatives.get()); ++i) {
      const GENERAL_NAME* name = sk_GENERAL_NAME_value(alternatives.get(), i);
      if (name->type == GEN_DNS) add_name(names, text_of(name->d.dNSName));
    }
    return names;
  }
  const X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at >= 0) {
    add_name(names, text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))));
  }
  return names;
}

}  // namespace ringside::tls
