// OCSP: what is asked, and which answers are believed.
#include "ringside/tls/ocsp.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "authority.h"
#include "ocsp_question.h"

namespace ringside::tls::test {
namespace {

using Lines = std::vector<std::string>;

std::span<const unsigned char> bytes_of(const std::string& text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

class TlsOcsp : public ::testing::Test {
 protected:
  Issued named(const std::vector<std::string>& responders) {
    return issue({.common_name = "site", .responders = responders}, &middle);
  }
  static std::expected<OcspQuestion, std::string> ask(const Issued& issued, const Issued& issuer) {
    return make_ocsp_question(issued.certificate.get(), issuer.certificate.get());
  }
  std::expected<OcspAnswer, std::string> answer(const std::string& bytes) {
    return read_ocsp_answer(bytes_of(bytes), ask(site, middle).value(), now());
  }
  std::string refusal(const std::string& bytes) {
    const auto read = answer(bytes);
    return read ? "none" : read.error();
  }

  Issued root = issue({.common_name = "root", .authority = true});
  Issued middle = issue({.common_name = "middle", .authority = true}, &root);
  Issued site = named({"http://ocsp.test/"});
};

TEST_F(TlsOcsp, TheCertificateSaysWhomToAsk) {
  const auto question = ask(site, middle);
  ASSERT_TRUE(question) << question.error();
  EXPECT_EQ(question->url, "http://ocsp.test/");
  EXPECT_EQ(question->host, "ocsp.test");
  EXPECT_EQ(question->port, "80");
  EXPECT_EQ(question->path, "/");
  EXPECT_EQ(question->certificate, der_of(site.certificate.get()));
  EXPECT_EQ(question->issuer, der_of(middle.certificate.get()));
  const unsigned char* at = question->request.data();
  const std::unique_ptr<OCSP_REQUEST, Deleter<OCSP_REQUEST_free>> request(
      d2i_OCSP_REQUEST(nullptr, &at, static_cast<long>(question->request.size())));
  ASSERT_TRUE(request);
  ASSERT_EQ(OCSP_request_onereq_count(request.get()), 1);
  ASN1_INTEGER* serial = nullptr;
  OCSP_CERTID* id = OCSP_onereq_get0_id(OCSP_request_onereq_get0(request.get(), 0));
  OCSP_id_get0_info(nullptr, nullptr, nullptr, &serial, id);
  EXPECT_EQ(ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(site.certificate.get())), 0);
  EXPECT_EQ(OCSP_REQUEST_get_ext_by_NID(request.get(), NID_id_pkix_OCSP_Nonce, -1), -1);
}

TEST_F(TlsOcsp, TheFirstThatSpeaksHttpIsAsked) {
  const auto question = ask(named({"https://secure.test/", "ldap://x.test/",
                                   "http://[::1]:8080/a/b?c=d", "http://late.test/"}),
                            middle);
  ASSERT_TRUE(question) << question.error();
  EXPECT_EQ(question->url, "http://[::1]:8080/a/b?c=d");
  EXPECT_EQ(question->host, "::1");
  EXPECT_EQ(question->port, "8080");
  EXPECT_EQ(question->path, "/a/b?c=d");
}

TEST_F(TlsOcsp, SometimesNobodyCanBeAsked) {
  EXPECT_EQ(ask(named({}), middle).error(), "the certificate names no OCSP responder");
  const std::string none = "the certificate names no OCSP responder with http://";
  EXPECT_EQ(ask(named({"https://secure.test/"}), middle).error(), none);
  EXPECT_EQ(ask(named({"http://"}), middle).error(), none);
  EXPECT_EQ(ask(named({"http://a.test/x HTTP/1.0"}), middle).error(), none);
  EXPECT_EQ(ask(named({"http://a.test/\r\nX: y"}), middle).error(), none);
}

TEST_F(TlsOcsp, AGoodAnswerIsTaken) {
  const std::string bytes = ocsp_response(site, middle, 3600);
  const auto read = answer(bytes + "behind it");
  ASSERT_TRUE(read) << read.error();
  EXPECT_FALSE(read->revoked);
  EXPECT_EQ(std::string(read->staple.response.begin(), read->staple.response.end()), bytes);
  EXPECT_NEAR(static_cast<double>(read->staple.this_update), static_cast<double>(now() - 7200), 60);
  EXPECT_NEAR(static_cast<double>(read->staple.next_update), static_cast<double>(now() + 3600), 60);
}

TEST_F(TlsOcsp, TheIssuerMayLeaveItToAnother) {
  const Issued delegate = issue({.common_name = "delegate", .usage = "OCSPSigning"}, &middle);
  EXPECT_TRUE(answer(ocsp_response(site, middle, {.signer = &delegate})));
  const Issued no_delegate = issue({.common_name = "other"}, &middle);
  const Issued of_another = issue({.common_name = "delegate", .usage = "OCSPSigning"}, &root);
  const Issued of_nobody = issue({.common_name = "delegate", .usage = "OCSPSigning"});
  const Issued old = issue(
      {.common_name = "old", .from_s = -7200, .until_s = -60, .usage = "OCSPSigning"}, &middle);
  const Issued* others[] = {&no_delegate, &of_another, &of_nobody, &old, &root};
  for (const Issued* signer : others) {
    const std::string why = refusal(ocsp_response(site, middle, {.signer = signer}));
    EXPECT_TRUE(why.starts_with("is not signed by the issuer: ")) << why;
  }
}

TEST_F(TlsOcsp, WhatIsNotSignedByTheIssuerIsNot) {
  // The same name, another key; and a signature that does not fit.
  const Issued namesake = issue({.common_name = "middle", .authority = true}, &root);
  std::string changed = ocsp_response(site, middle, 3600);
  changed.back() = static_cast<char>(changed.back() ^ 1);
  for (const std::string& bytes : {ocsp_response(site, middle, {.signer = &namesake}), changed}) {
    const std::string why = refusal(bytes);
    EXPECT_TRUE(why.starts_with("is not signed by the issuer: ")) << why;
  }
}

TEST_F(TlsOcsp, AnswersThatAreNoHelp) {
  EXPECT_TRUE(refusal("nonsense").starts_with("cannot be read: "));
  EXPECT_TRUE(refusal("").starts_with("cannot be read: "));
  // OCSPResponse { tryLater }.
  EXPECT_EQ(refusal("\x30\x03\x0a\x01\x03"), "is a failure: trylater");
  EXPECT_EQ(refusal(ocsp_response(named({}), middle, 3600)), "is about another certificate");
  EXPECT_EQ(refusal(ocsp_response(site, middle, 3600, V_OCSP_CERTSTATUS_UNKNOWN)),
            "says that the responder does not know the certificate");
  EXPECT_TRUE(refusal(ocsp_response(site, middle, -1)).starts_with("expired on "));
  EXPECT_TRUE(refusal(ocsp_response(site, middle, {.from_s = 600, .until_s = 3600}))
                  .starts_with("is not good before "));
  EXPECT_TRUE(answer(ocsp_response(site, middle, {.from_s = 60, .until_s = 3600})))
      << "clocks differ a little";
}

TEST_F(TlsOcsp, ARevokedCertificateIsOne) {
  const auto read = answer(ocsp_response(site, middle, 3600, V_OCSP_CERTSTATUS_REVOKED));
  ASSERT_TRUE(read) << read.error();
  EXPECT_TRUE(read->revoked);
  EXPECT_TRUE(read->revoked_on.ends_with(" UTC")) << read->revoked_on;
}

TEST_F(TlsOcsp, CertificatesAreLoadedWithTheirQuestion) {
  const Folder folder;
  config::Tls tls;
  tls.name = "a";
  tls.certificates = {folder.files("s", site, &middle)};
  auto load = [&] { return load_credentials(tls, now()); };
  EXPECT_FALSE(load().credentials->certificates[0].ocsp_question);
  tls.ocsp = config::Ocsp::fetch;
  const auto loaded = load();
  EXPECT_EQ(loaded.warnings, Lines());
  const Certificate& certificate = loaded.credentials->certificates[0];
  ASSERT_TRUE(certificate.ocsp_question);
  EXPECT_EQ(certificate.ocsp_question->issuer, der_of(middle.certificate.get()));
  ASSERT_TRUE(certificate.staple);
  EXPECT_EQ(certificate.staple->get(), nullptr);

  // A file goes before.
  tls.certificates[0].ocsp = folder.write("ocsp", ocsp_response(site, middle, 3600));
  EXPECT_FALSE(load().credentials->certificates[0].ocsp_question);
  EXPECT_NE(load().credentials->certificates[0].staple->get(), nullptr);

  tls.certificates = {folder.files("n", named({}), &middle)};
  EXPECT_EQ(load().warnings, Lines{folder.path("n.pem") +
                                   ": no OCSP response can be fetched: the certificate names no "
                                   "OCSP responder"});
  EXPECT_EQ(load().credentials->certificates[0].staple, nullptr);
  tls.certificates = {folder.files("r", root)};
  EXPECT_EQ(load().warnings, Lines{folder.path("r.pem") +
                                   ": no OCSP response can be fetched: the certificate is its own "
                                   "issuer"});
  tls.certificates = {folder.files("l", site)};
  const Lines leaf = load().warnings;
  ASSERT_EQ(leaf.size(), 1U);
  EXPECT_TRUE(leaf[0].ends_with(", and nobody can be asked for an OCSP response")) << leaf[0];
}

// ---- over HTTP

class TlsOcspTransfer : public TlsOcsp {
 protected:
  TlsOcspTransfer() {
    ::signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_), 0);
    transfer_ = OcspTransfer::make(ends_[0], ask(site, middle).value());
  }
  ~TlsOcspTransfer() override {
    transfer_.reset();
    for (const int end : ends_)
      ::close(end);
  }
  std::string request() {
    EXPECT_EQ(transfer_->advance(), OcspTransfer::Step::wants_to_read);
    char text[4096];
    const ssize_t size = ::read(ends_[1], text, sizeof text);
    return {text, static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }
  // In pieces of `size` bytes; then the other end closes.
  OcspTransfer::Step reply(const std::string& text, std::size_t size) {
    auto step = OcspTransfer::Step::wants_to_read;
    for (std::size_t at = 0; at < text.size() && step == OcspTransfer::Step::wants_to_read;
         at += size) {
      const std::string piece = text.substr(at, size);
      EXPECT_EQ(::write(ends_[1], piece.data(), piece.size()), static_cast<ssize_t>(piece.size()));
      step = transfer_->advance();
    }
    ::shutdown(ends_[1], SHUT_WR);
    return step == OcspTransfer::Step::wants_to_read ? transfer_->advance() : step;
  }
  static std::string ok(const std::string& body, const std::string& type = "ocsp-response") {
    return "HTTP/1.1 200 OK\r\nContent-Type: application/" + type +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  int ends_[2] = {-1, -1};
  std::unique_ptr<OcspTransfer> transfer_;
};

TEST_F(TlsOcspTransfer, AsksAsTheRulesHaveIt) {
  const std::string text = request();
  EXPECT_TRUE(text.starts_with("POST / HTTP/1.0\r\n")) << text;
  EXPECT_NE(text.find("\r\nHost: ocsp.test\r\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\r\nContent-Type: application/ocsp-request\r\n"), std::string::npos) << text;
  const Der der = ask(site, middle)->request;
  EXPECT_TRUE(text.ends_with("\r\n\r\n" + std::string(der.begin(), der.end())));
}

TEST_F(TlsOcspTransfer, TakesAnAnswerInAnyPieces) {
  const std::string body = ocsp_response(site, middle, 3600);
  for (const std::size_t size : {std::size_t{1}, std::size_t{7}, std::size_t{100'000}}) {
    TlsOcspTransfer::request();
    ASSERT_EQ(reply(ok(body), size), OcspTransfer::Step::done) << transfer_->failure();
    EXPECT_EQ(std::string(transfer_->response().begin(), transfer_->response().end()), body);
    transfer_.reset();
    for (const int end : ends_)
      ::close(end);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_), 0);
    transfer_ = OcspTransfer::make(ends_[0], ask(site, middle).value());
  }
}

class TlsOcspFailure : public TlsOcspTransfer,
                       public ::testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(TlsOcspFailure, IsSaidInOneLine) {
  request();
  ASSERT_EQ(reply(GetParam().first, 100'000), OcspTransfer::Step::failed);
  EXPECT_NE(transfer_->failure().find(GetParam().second), std::string::npos)
      << transfer_->failure();
  EXPECT_EQ(transfer_->failure().find('\n'), std::string::npos);
  EXPECT_LE(transfer_->failure().size(), 200U);
}

INSTANTIATE_TEST_SUITE_P(
    Of, TlsOcspFailure,
    ::testing::Values(
        std::pair("HTTP/1.1 500 Internal\x1b Error\r\nContent-Length: 0\r\n\r\n", "500"),
        std::pair("HTTP/1.1 301 Moved\r\nLocation: http://x.test/\r\n\r\n", "redirection"),
        std::pair("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html></html>", "asn1"),
        std::pair("HTTP/1.1 200 OK\r\nContent-Type: application/ocsp-response\r\n\r\nnonsense",
                  "asn1"),
        // An ASN.1 sequence of 16 MiB.
        std::pair("HTTP/1.1 200 OK\r\nContent-Type: application/ocsp-response\r\n\r\n"
                  "\x30\x84\x01\x01\x01\x01 and so on",
                  "max"),
        std::pair("HTTP/1.1 200 OK\r\nContent-Type: application/ocsp-response\r\n"
                  "Content-Length: 99999999\r\n\r\n",
                  "max"),
        std::pair("220 mail.test ESMTP\r\n", "header parse error"),
        std::pair("", "failed reading data")));

TEST_F(TlsOcspTransfer, ALineWithoutEndIsAFailure) {
  request();
  EXPECT_EQ(reply("HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x'), 10'000),
            OcspTransfer::Step::failed);
}

}  // namespace
}  // namespace ringside::tls::test
