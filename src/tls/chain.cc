#include "chain.h"

#include <algorithm>
#include <ctime>

#include "ringside/base/text.h"

namespace ringside::tls {
namespace {

bool self_signed(X509* certificate) {
  return X509_self_signed(certificate, 0) == 1;
}

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
  if (chain.size() == 1 && !self_signed(chain.front().get())) {
    warnings.push_back(join({file, ": the certificate of the issuer, ",
                             name_text(X509_get_issuer_name(chain.front().get())),
                             ", is missing; many clients will not trust this one without it"}));
  }
  return chain;
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
