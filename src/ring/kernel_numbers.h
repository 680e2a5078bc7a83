// Numbers of the kernel's interface that liburing 2.3 does not have. Each is probed before use.
#pragma once

#include <cstdint>

namespace ringside::ring::kernel {

// io_uring_params.features
inline constexpr std::uint32_t feature_bundle = 1U << 14;  // 6.10

// sqe->ioprio of RECV and SEND
inline constexpr std::uint16_t receive_send_bundle = 1U << 4;         // 6.10
inline constexpr std::uint16_t send_zero_copy_report = 1U << 3;       // 6.2, and some 6.1
inline constexpr std::int32_t notification_copied = -2147483647 - 1;  // bit 31 of its result

// io_uring_buf_reg.flags, which liburing 2.3 calls `pad`
inline constexpr std::uint16_t buffer_ring_incremental = 2;  // 6.12

// io_uring.int_flags: the ring's descriptor is registered with the thread
inline constexpr std::uint8_t ring_registered = 1;

}  // namespace ringside::ring::kernel
