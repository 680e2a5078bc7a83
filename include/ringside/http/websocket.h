// The opening handshake of a WebSocket in HTTP/1.1 (RFC 6455 §4), of which HTTP/2 has nothing
// (RFC 8441 §5): who translates one into the other makes the key, and checks the answer to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ringside::http {

inline constexpr std::string_view websocket_key_name = "Sec-WebSocket-Key";
inline constexpr std::string_view websocket_accept_name = "Sec-WebSocket-Accept";
inline constexpr std::size_t websocket_nonce_bytes = 16;
inline constexpr std::size_t websocket_key_bytes = 24;
inline constexpr std::size_t websocket_accept_bytes = 28;

// Sec-WebSocket-Key: the nonce, in base64.
std::array<char, websocket_key_bytes> websocket_key(
    std::span<const std::uint8_t, websocket_nonce_bytes> nonce);

// Sec-WebSocket-Accept: what a server answers to a key, whose length must be websocket_key_bytes.
std::array<char, websocket_accept_bytes> websocket_accept(std::string_view key);

}  // namespace ringside::http
