#include "ringside/tls/credentials.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "ringside/tls/credentials_watcher.h"

#include "authority.h"

namespace ringside::tls::test {
namespace {

using Lines = std::vector<std::string>;

class TlsCredentials : public ::testing::Test {
 protected:
  config::Tls entry(config::TlsCertificate files) {
    config::Tls tls;
    tls.name = "a";
    tls.certificates.push_back(std::move(files));
    return tls;
  }
  // One error, no credentials.
  std::string error_of(const config::Tls& tls) {
    const auto loaded = load_credentials(tls, now());
    EXPECT_EQ(loaded.credentials, nullptr);
    EXPECT_EQ(loaded.errors.size(), 1U);
    return loaded.errors.empty() ? std::string() : loaded.errors[0];
  }
  Lines warnings_of(const config::Tls& tls) {
    const auto loaded = load_credentials(tls, now());
    EXPECT_EQ(loaded.errors, Lines());
    return loaded.warnings;
  }

  Folder folder;
  Issued root = issue({.common_name = "root", .authority = true});
  Issued middle = issue({.common_name = "middle", .authority = true}, &root);
  Issued site =
      issue({.common_name = "site", .names = {"DNS:A.test", "DNS:*.b.test", "IP:::1"}}, &middle);
};

TEST_F(TlsCredentials, AGoodChainIsTakenInSilence) {
  const auto loaded = load_credentials(entry(folder.files("s", site, &middle)), now());
  EXPECT_EQ(loaded.errors, Lines());
  EXPECT_EQ(loaded.warnings, Lines());
  ASSERT_TRUE(loaded.credentials);
  const Certificate& certificate = loaded.credentials->certificates.at(0);
  EXPECT_EQ(certificate.names, (Lines{"a.test", "*.b.test"}));
  EXPECT_EQ(certificate.chain.size(), 2U);
  EXPECT_EQ(certificate.key_type, EVP_PKEY_EC);
  EXPECT_EQ(loaded.credentials->session_binding.size(), 32U);
}

TEST_F(TlsCredentials, TheCommonNameCountsOnlyWithoutAlternatives) {
  const Issued plain = issue({.common_name = "CN.test"});
  const auto loaded = load_credentials(entry(folder.files("s", plain)), now());
  EXPECT_EQ(loaded.warnings, Lines());  // it is its own issuer
  EXPECT_EQ(loaded.credentials->certificates[0].names, Lines{"cn.test"});
}

TEST_F(TlsCredentials, AWrongOrderIsPutRight) {
  config::Tls tls = entry(folder.files("s", site));
  folder.chain("s.pem", {&root, &middle, &site});
  const auto loaded = load_credentials(tls, now());
  EXPECT_EQ(loaded.warnings,
            Lines{folder.path("s.pem") + ": the certificates are not in the order of their chain; "
                                         "they are sent in the right one"});
  const auto& chain = loaded.credentials->certificates.at(0).chain;
  EXPECT_EQ(chain,
            (std::vector<Der>{der_of(site.certificate.get()), der_of(middle.certificate.get()),
                              der_of(root.certificate.get())}));
}

TEST_F(TlsCredentials, StrangersInTheChainAreLeftOut) {
  const Issued other = issue({.common_name = "other"});
  config::Tls tls = entry(folder.files("s", site));
  folder.chain("s.pem", {&site, &middle, &other});
  const auto loaded = load_credentials(tls, now());
  EXPECT_EQ(loaded.warnings,
            Lines{folder.path("s.pem") + ": CN=other is no part of the chain and is not sent"});
  EXPECT_EQ(loaded.credentials->certificates.at(0).chain.size(), 2U);
}

TEST_F(TlsCredentials, AMissingIssuerIsWarnedOf) {
  EXPECT_EQ(warnings_of(entry(folder.files("s", site))),
            Lines{folder.path("s.pem") + ": the certificate of the issuer, CN=middle, is missing; "
                                         "many clients will not trust this one without it"});
}

// The system's store is what OpenSSL's environment variables say; nothing else of it is looked at.
class SystemStore {
 public:
  explicit SystemStore(const std::string& file) {
    ::setenv("SSL_CERT_FILE", file.c_str(), 1);
    ::setenv("SSL_CERT_DIR", "/nowhere", 1);
  }
  ~SystemStore() {
    ::unsetenv("SSL_CERT_FILE");
    ::unsetenv("SSL_CERT_DIR");
  }
  SystemStore(const SystemStore&) = delete;
  SystemStore& operator=(const SystemStore&) = delete;
};

TEST_F(TlsCredentials, ARootThatClientsHaveNeedNotBeSent) {
  const Issued direct = issue({.common_name = "direct"}, &root);
  const config::Tls tls = entry(folder.files("d", direct));
  const Lines missing{folder.path("d.pem") +
                      ": the certificate of the issuer, CN=root, is missing; "
                      "many clients will not trust this one without it"};
  EXPECT_EQ(warnings_of(tls), missing);
  {
    const SystemStore system(folder.chain("system", {&middle, &root}));
    EXPECT_EQ(warnings_of(tls), Lines());
    EXPECT_EQ(warnings_of(entry(folder.files("s", site))).size(), 1U)
        << "an intermediate is not what clients have, wherever it is found";
  }
  EXPECT_EQ(warnings_of(tls), missing);
  config::Tls known = tls;
  known.client_certificate = config::ClientCertificate::optional;
  known.client_ca = folder.chain("clients", {&root});
  EXPECT_EQ(warnings_of(known), Lines());
}

TEST_F(TlsCredentials, ARootOfTheSameNameIsAnother) {
  const Issued direct = issue({.common_name = "direct"}, &root);
  const Issued namesake = issue({.common_name = "root", .authority = true});
  const config::Tls tls = entry(folder.files("d", direct));
  {
    const SystemStore system(folder.chain("system", {&namesake}));
    EXPECT_EQ(warnings_of(tls).size(), 1U);
  }
  const SystemStore system(folder.chain("system", {&namesake, &root}));
  EXPECT_EQ(warnings_of(tls), Lines());
}

TEST_F(TlsCredentials, DatesAreWarnedOf) {
  const Issued old = issue({.common_name = "old", .from_s = -90'000, .until_s = -10});
  const auto expired = warnings_of(entry(folder.files("o", old)));
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_EQ(expired[0], folder.path("o.pem") + ": CN=old expired on " +
                            time_text(X509_get0_notAfter(old.certificate.get())));
  EXPECT_TRUE(expired[0].ends_with(" UTC"));
  const Issued early = issue({.common_name = "early", .from_s = 7200});
  const auto not_yet = warnings_of(entry(folder.files("e", early)));
  ASSERT_EQ(not_yet.size(), 1U);
  EXPECT_EQ(not_yet[0], folder.path("e.pem") + ": CN=early is not valid before " +
                            time_text(X509_get0_notBefore(early.certificate.get())));
}

TEST_F(TlsCredentials, TheKeyMustBelong) {
  config::Tls tls = entry(folder.files("s", site, &middle));
  tls.certificates[0].key = folder.key("other.key", root);
  EXPECT_EQ(error_of(tls), "the key in " + folder.path("other.key") +
                               " does not belong to the certificate in " + folder.path("s.pem"));
}

TEST_F(TlsCredentials, BadFilesAreNamedAllAtOnce) {
  config::Tls tls = entry({folder.path("none.pem"), folder.write("k", "nothing\n"), {}});
  tls.certificates.push_back({folder.write("c", "nothing\n"), folder.path("none.key"), {}});
  tls.client_ca = folder.path("none.ca");
  const auto loaded = load_credentials(tls, now());
  EXPECT_EQ(loaded.errors,
            (Lines{folder.path("none.pem") + " cannot be read: No such file or directory",
                   folder.path("k") + " has no private key in PEM form",
                   folder.path("c") + " has no certificate in PEM form",
                   folder.path("none.key") + " cannot be read: No such file or directory",
                   folder.path("none.ca") + " cannot be read: No such file or directory"}));
  EXPECT_EQ(loaded.credentials, nullptr);
}

TEST_F(TlsCredentials, BrokenPemGetsOpenSslsReason) {
  const std::string pem = pem_of(site.certificate.get());
  config::Tls tls = entry(folder.files("s", site));
  folder.write("s.pem", pem + pem.substr(0, 100) + "\n-----END CERTIFICATE-----\n");
  const std::string error = error_of(tls);
  EXPECT_TRUE(
      error.starts_with(folder.path("s.pem") + ": certificate 2 of the file cannot be read: "))
      << error;
  EXPECT_FALSE(error.ends_with("unknown error")) << error;
  folder.chain("s.pem", {&site, &middle});
  folder.write("s.key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
  const std::string key = error_of(tls);
  EXPECT_TRUE(key.starts_with(folder.path("s.key") + ": the private key cannot be read: ")) << key;
  tls.certificates[0].cert = "/";
  tls.certificates[0].key = "/dev/zero";
  EXPECT_EQ(load_credentials(tls, now()).errors,
            (Lines{"/ cannot be read: it is no file", "/dev/zero cannot be read: it is no file"}));
}

TEST_F(TlsCredentials, EncryptedKeysAreRefused) {
  config::Tls tls = entry(folder.files("s", site, &middle));
  folder.key("s.key", site, "secret");
  EXPECT_EQ(error_of(tls), folder.path("s.key") +
                               ": the private key is encrypted; store it without a password, "
                               "readable by ringside's user alone");
}

TEST_F(TlsCredentials, AKeyThatAllCanReadIsWarnedOf) {
  const config::Tls tls = entry(folder.files("s", site, &middle));
  ASSERT_EQ(::chmod(folder.path("s.key").c_str(), 0644), 0);
  EXPECT_EQ(warnings_of(tls), Lines{folder.path("s.key") + ": every user of this machine can read "
                                                           "the private key"});
}

TEST_F(TlsCredentials, WeakKeysAndUnknownAlgorithmsAreRefused) {
  const Issued weak = issue({.common_name = "weak", .kind = KeyKind::weak_rsa});
  EXPECT_EQ(error_of(entry(folder.files("w", weak))), folder.path("w.pem") + ": ee key too small");
  config::Tls tls = entry(folder.files("s", site, &middle));
  tls.groups = {"X25519", "P-2000"};
  EXPECT_TRUE(error_of(tls).starts_with("groups = \"X25519:P-2000\" is not what OpenSSL knows: "));
  tls.groups.clear();
  tls.ciphers = {"NO-SUCH"};
  EXPECT_EQ(error_of(tls), "ciphers = \"NO-SUCH\" is not what OpenSSL knows: no cipher match");
  tls.ciphers.clear();
  tls.ciphersuites = {"TLS_NO"};
  EXPECT_TRUE(error_of(tls).starts_with("ciphersuites = \"TLS_NO\" is not what OpenSSL knows: "));
}

TEST_F(TlsCredentials, ACertificateThatIsNeverUsedIsWarnedOf) {
  const Issued again = issue({.common_name = "again", .names = {"DNS:a.test"}});
  config::Tls tls = entry(folder.files("s", site, &middle));
  tls.certificates.push_back(folder.files("again", again));
  EXPECT_EQ(warnings_of(tls), Lines{folder.path("again.pem") +
                                    ": never used, since certificates before it have all of its "
                                    "names and the same type of key"});
}

TEST_F(TlsCredentials, StaplesAreChecked) {
  config::Tls tls = entry(folder.files("s", site, &middle));
  const std::string file = tls.certificates[0].ocsp = folder.path("ocsp");
  auto expect = [&](const std::string& bytes, const std::string& warning) {
    folder.write("ocsp", bytes);
    const auto loaded = load_credentials(tls, now());
    ASSERT_TRUE(loaded.credentials);
    EXPECT_EQ(loaded.credentials->certificates[0].staple, nullptr);
    ASSERT_EQ(loaded.warnings.size(), 1U);
    EXPECT_TRUE(loaded.warnings[0].starts_with(file + ": the OCSP response " + warning))
        << loaded.warnings[0];
    EXPECT_TRUE(loaded.warnings[0].ends_with("; it is not stapled")) << loaded.warnings[0];
  };
  expect("nonsense", "cannot be read: ");
  expect(ocsp_response(middle, root, 3600), "is about another certificate");
  expect(ocsp_response(site, middle, -60), "expired on ");
  expect(ocsp_response(site, middle, 3600, V_OCSP_CERTSTATUS_REVOKED),
         "says that the certificate is revoked");
  folder.write("ocsp", ocsp_response(site, middle, 3600));
  EXPECT_EQ(warnings_of(tls), Lines());
  const auto loaded = load_credentials(tls, now());
  ASSERT_NE(loaded.credentials->certificates[0].staple, nullptr);
  EXPECT_FALSE(loaded.credentials->certificates[0].staple->get()->response.empty());
}

TEST_F(TlsCredentials, TheBindingFollowsTheRulesAboutClients) {
  config::Tls tls = entry(folder.files("s", site, &middle));
  auto binding = [&] { return load_credentials(tls, now()).credentials->session_binding; };
  const auto plain = binding();
  EXPECT_EQ(binding(), plain);
  tls.client_certificate = config::ClientCertificate::optional;
  tls.client_ca = folder.chain("ca", {&root});
  const auto optional = binding();
  tls.client_certificate = config::ClientCertificate::required;
  const auto required = binding();
  tls.client_ca = folder.chain("ca2", {&middle});
  const auto other_ca = binding();
  tls.name = "b";
  const auto other_name = binding();
  const std::vector<std::vector<unsigned char>> all{plain, optional, required, other_ca,
                                                    other_name};
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_NE(all[i], all[j]) << i << " " << j;
  }
}

TEST_F(TlsCredentials, TheWatcherTakesOnlyWhatIsGood) {
  const config::Tls tls = entry(folder.files("s", site, &middle));
  CredentialsWatcher watcher(tls, load_credentials(tls, now()).credentials);
  const auto first = watcher.current();
  ASSERT_TRUE(first);
  EXPECT_EQ(watcher.files(), (Lines{folder.path("s.pem"), folder.path("s.key")}));
  EXPECT_EQ(watcher.poll(now()).outcome, CredentialsWatcher::Outcome::unchanged);

  // Half of a change, as a tool that writes two files makes it.
  const Issued next = issue({.common_name = "next", .names = {"DNS:a.test"}}, &middle);
  folder.chain("s.pem", {&next, &middle});
  const auto refused = watcher.poll(now());
  EXPECT_EQ(refused.outcome, CredentialsWatcher::Outcome::refused);
  ASSERT_EQ(refused.errors.size(), 1U);
  EXPECT_NE(refused.errors[0].find("does not belong"), std::string::npos);
  EXPECT_EQ(watcher.current(), first);
  EXPECT_EQ(watcher.poll(now()).outcome, CredentialsWatcher::Outcome::unchanged);

  folder.key("s.key", next);
  EXPECT_EQ(watcher.poll(now()).outcome, CredentialsWatcher::Outcome::replaced);
  ASSERT_NE(watcher.current(), first);
  EXPECT_EQ(watcher.current()->certificates[0].chain[0], der_of(next.certificate.get()));

  std::filesystem::remove(folder.path("s.key"));
  EXPECT_EQ(watcher.poll(now()).outcome, CredentialsWatcher::Outcome::refused);
}

}  // namespace
}  // namespace ringside::tls::test
