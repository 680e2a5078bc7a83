// Provided-buffer rings and registered buffers, seen from the kernel's side.
#pragma once

#include <liburing.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace ringside::sim {

// Memory that was given to the kernel is filled with `poison_byte` (and made untouchable under
// AddressSanitizer), so that somebody who still reads a buffer after giving it back is caught.
class BufferGroups {
 public:
  static constexpr unsigned char poison_byte = 0xdb;

  BufferGroups() = default;
  ~BufferGroups();
  BufferGroups(const BufferGroups&) = delete;
  BufferGroups& operator=(const BufferGroups&) = delete;

  int add(const io_uring_buf_reg& request);
  int remove(unsigned group_id);
  // Takes note of what was published since the last call.
  void watch();

  struct Buffer {
    char* data;
    std::size_t bytes;
    std::uint16_t id;
  };
  // The next buffer without taking it. False when there is none, or no such group.
  bool peek(unsigned group_id, Buffer* out);
  // Takes it with `bytes` of data in it.
  void take(unsigned group_id, std::size_t bytes);
  // Makes [data, data + bytes) writable for the kernel itself.
  static void unpoison(void* data, std::size_t bytes);

  // For breaking things on purpose: the next buffer that is taken is handed out once more.
  void hand_out_twice() { twice_ = true; }

  int register_table(const iovec* buffers, unsigned count);
  int register_sparse(unsigned count);
  int update_table(unsigned offset, const iovec* buffers, unsigned count);
  // Whether the range lies in registered buffer `index`.
  bool covers(unsigned index, const void* data, std::size_t bytes) const;

 private:
  struct Group {
    io_uring_buf_ring* shared = nullptr;
    unsigned entries = 0;
    std::uint16_t head = 0;
    std::uint16_t seen = 0;
    std::map<std::uint16_t, std::uint32_t> written;  // bytes last delivered, by buffer
  };
  static const io_uring_buf& entry(const Group& group, std::uint16_t at);
  static void publish(Group& group, const io_uring_buf& buffer);
  static void forget(Group& group);

  std::map<unsigned, Group> groups_;
  std::vector<iovec> table_;
  bool twice_ = false;
};

}  // namespace ringside::sim
