// Who a client is, by its handshake and its certificate, for variables and header fields.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ringside/tls/engine.h"

struct x509_st;

namespace ringside::tls {

// What a certificate says. Each text is one line of printable ASCII: every other byte, and every
// byte that would separate or end something, is "\XX" or has a backslash before it. Lists are
// separated by ", ".
struct PeerIdentity {
  std::string subject;      // RFC 2253, as RFC 4514: the most specific part first
  std::string common_name;  // the most specific one of the subject
  std::string issuer;       // as `subject`
  std::string serial;       // upper-case hex
  std::string fingerprint;  // SHA-256 of the certificate, lower-case hex
  // The subject's alternative names: "DNS:a.test, IP:10.0.0.1, IP:::1, email:a@b, URI:...".
  std::string names;
  std::string dns;  // those of one kind, without its name
  std::string uri;
  std::string email;
};

struct CertificateDeleter {
  void operator()(x509_st* certificate) const;
};

// What stays known of a client once its handshake is over. Owner: its session, thread: its ring's.
// It needs nothing of the SSL object later, which is freed when the kernel takes over.
class Peer {
 public:
  // `ssl`: its handshake has just been completed, or it resumed a session, which knows the same.
  // Allocates little; the certificate is only referred to.
  explicit Peer(const ssl_st* ssl);
  // The same of what is known without OpenSSL, which is nobody's certificate.
  explicit Peer(const ConnectionInfo& info);

  std::string_view version() const { return version_; }  // "TLSv1.3"
  std::string_view cipher() const { return cipher_; }    // OpenSSL's name
  std::string_view alpn() const { return alpn_; }        // empty: none was agreed on
  // As the client asked for it, in lower case and without a dot at the end; empty: for none.
  std::string_view server_name() const { return server_name_; }
  // Whether that is made of nothing but what host names are made of.
  bool names_host() const { return names_host_; }

  // A certificate was asked for, shown and found good.
  bool verified() const { return certificate_ != nullptr; }
  // Null unless verified(). Read at the first call, which allocates, and kept.
  const PeerIdentity* identity();
  // The certificate as a field has it (RFC 9440 §2.2, RFC 8941 §3.3.5): ":BASE64:". Empty unless
  // verified(), and where memory ran out. Made at the first call and kept.
  std::string_view certificate_field();

 private:
  void name_server(std::string_view name);

  std::string_view version_;
  std::string_view cipher_;
  std::string alpn_;
  std::string server_name_;
  bool names_host_ = false;
  std::unique_ptr<x509_st, CertificateDeleter> certificate_;
  std::unique_ptr<PeerIdentity> identity_;
  std::string field_;
};

}  // namespace ringside::tls
