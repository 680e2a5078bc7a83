// OpenSSL's own state: fetched algorithms, random generators, and the locks around them.
#pragma once

#include <memory>

struct ossl_lib_ctx_st;

namespace ringside::tls {

// OpenSSL 3.0 takes locks of the library context in every handshake, so threads that share one wait
// for each other. A context of its own for each ring keeps them apart.
// Thread: everything made in an own context stays on one thread. Lifetime: the contexts made in it
// hold it; it is freed after the last of them.
class LibraryContext {
 public:
  // The process's default one.
  static std::shared_ptr<LibraryContext> shared();
  // A fresh one; null when there is no memory.
  static std::shared_ptr<LibraryContext> own();
  ~LibraryContext();
  LibraryContext(const LibraryContext&) = delete;
  LibraryContext& operator=(const LibraryContext&) = delete;

  // Null for the shared one, which is how OpenSSL names it.
  ossl_lib_ctx_st* get() const { return context_; }

 private:
  explicit LibraryContext(ossl_lib_ctx_st* context) : context_(context) {}

  ossl_lib_ctx_st* context_;
};

}  // namespace ringside::tls
