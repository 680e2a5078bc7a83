// What became of the TLS connections of a ring.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace ringside::tls {

// Why the kernel does not make, or does not open, the records of a connection.
enum class UserSpace : std::uint8_t {
  off,          // ktls = "off"
  unavailable,  // the kernel has no TLS
  cipher,       // one that the kernel does not know
  fragments,    // max_fragment_length was agreed on
  kernel,       // it refused this connection
  keys,         // OpenSSL did not tell them
  ended,        // the connection was over before
};
inline constexpr std::string_view user_space_names[] = {
    "off", "unavailable", "cipher", "max_fragment_length", "kernel", "keys", "ended"};
inline constexpr std::size_t user_space_reasons = std::size(user_space_names);

// Counters of one ring: written by its thread, read by any.
struct RoleCounters {
  using Counter = std::atomic<std::uint64_t>;
  // Handshakes. One that nothing was ever received for did not fail.
  Counter full{0};
  Counter resumed{0};
  Counter failed{0};
  Counter early_data{0};  // connections on which it was taken
  Counter floods{0};      // connections that were ended for too many KeyUpdates or the like
  // Connections by what came after the handshake.
  Counter kernel_sends{0};
  Counter kernel_receives{0};
  Counter user_space[user_space_reasons]{};  // in one direction at least, by UserSpace
};

struct Counters {
  RoleCounters clients;  // that connected to a listener
  RoleCounters servers;  // that ringside connected to
};

}  // namespace ringside::tls
