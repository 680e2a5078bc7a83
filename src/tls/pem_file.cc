#include "pem_file.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ringside::tls {
namespace {

constexpr std::size_t file_bytes_max = 1U << 20;

std::string unreadable(const std::string& file, std::string_view why) {
  return join({file, " cannot be read: ", why});
}

BioPtr memory(const SecretBytes& bytes) {
  return BioPtr(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

bool no_more_blocks() {
  const unsigned long code = ERR_peek_last_error();
  return ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
}

// Remembers that OpenSSL wanted a password, and gives none.
int refuse_password(char* /*buffer*/, int /*size*/, int /*writing*/, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

}  // namespace

std::expected<SecretBytes, std::string> read_file(const std::string& file) {
  // A FIFO without a writer would block for ever.
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::unexpected(unreadable(file, std::strerror(errno)));
  struct stat status{};
  const bool plain = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  // One byte more than there should be shows a file that grows.
  const auto size = plain ? static_cast<std::size_t>(status.st_size) + 1 : 0;
  if (!plain || size > file_bytes_max) {
    ::close(fd);
    return std::unexpected(unreadable(file, plain ? "it is larger than 1 MiB" : "it is no file"));
  }
  std::vector<unsigned char> bytes(size);
  std::size_t have = 0;
  ssize_t got = 1;
  while (got > 0 && have < size) {
    got = ::read(fd, bytes.data() + have, size - have);
    if (got < 0 && errno == EINTR)
      got = 1;
    else if (got > 0)
      have += static_cast<std::size_t>(got);
  }
  const int failure = got < 0 ? errno : 0;
  ::close(fd);
  if (failure == 0 && have < size) {
    bytes.resize(have);
    return SecretBytes(std::move(bytes));
  }
  const SecretBytes cleared(std::move(bytes));
  return std::unexpected(
      unreadable(file, failure != 0 ? std::strerror(failure) : "it is being written"));
}

std::expected<std::vector<X509Ptr>, std::string> read_certificates(const std::string& file) {
  const auto bytes = read_file(file);
  if (!bytes) return std::unexpected(bytes.error());
  ERR_clear_error();
  const BioPtr in = memory(*bytes);
  std::vector<X509Ptr> certificates;
  while (X509Ptr certificate{PEM_read_bio_X509_AUX(in.get(), nullptr, nullptr, nullptr)})
    certificates.push_back(std::move(certificate));
  if (!no_more_blocks()) {
    return std::unexpected(join({file, ": certificate ", std::to_string(certificates.size() + 1),
                                 " of the file cannot be read: ", take_reason()}));
  }
  ERR_clear_error();
  if (certificates.empty()) return std::unexpected(join({file, " has no certificate in PEM form"}));
  return certificates;
}

std::expected<KeyPtr, std::string> read_key(const std::string& file) {
  const auto bytes = read_file(file);
  if (!bytes) return std::unexpected(bytes.error());
  ERR_clear_error();
  const BioPtr in = memory(*bytes);
  bool encrypted = false;
  KeyPtr key(PEM_read_bio_PrivateKey(in.get(), nullptr, refuse_password, &encrypted));
  if (key) return key;
  if (encrypted) {
    ERR_clear_error();
    return std::unexpected(
        join({file,
              ": the private key is encrypted; store it without a password, readable by ringside's "
              "user alone"}));
  }
  // OpenSSL 3.0 reports its decoders' errors rather than the absence of a block.
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  if (!text.contains("PRIVATE KEY-----")) {
    ERR_clear_error();
    return std::unexpected(join({file, " has no private key in PEM form"}));
  }
  return std::unexpected(join({file, ": the private key cannot be read: ", take_reason()}));
}

bool world_readable(const std::string& file) {
  struct stat status{};
  return ::stat(file.c_str(), &status) == 0 && (status.st_mode & S_IROTH) != 0;
}

}  // namespace ringside::tls
