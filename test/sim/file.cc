#include "file.h"

#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "op.h"
#include "sim_ring.h"

namespace ringside::sim {

void File::on_ready() {
  // Trying may change the list, so it only marks.
  for (Op* op : waiters_)
    op->ring->mark_ready(*op);
}

void File::add_waiter(Op& op) {
  waiters_.push_back(&op);
}

void File::remove_waiter(Op& op) {
  std::erase(waiters_, &op);
}

unsigned EventFile::poll_events() {
  return (count_ != 0 ? unsigned{POLLIN} : 0U) | POLLOUT;
}

int EventFile::take(std::uint64_t* count) {
  if (count_ == 0) return -EAGAIN;
  *count = std::exchange(count_, 0);
  return 8;
}

SocketFile::SocketFile(Network& network, std::shared_ptr<Stream> stream)
    : File(Kind::socket),
      network_(network),
      family_(stream->local_address().family()),
      accepted_(true),
      stream_(std::move(stream)) {
  stream_->set_waker(this);
}

SocketFile::~SocketFile() {
  stop_listening();
  if (bound_) network_.unbind(local_);
  if (dial_ != nullptr) dial_->waker = nullptr;
  if (stream_ == nullptr) return;
  if (abortive_) {
    stream_->reset();
  } else {
    stream_->release();
  }
}

void SocketFile::stop_listening() {
  if (listener_ == nullptr) return;
  listener_->set_waker(nullptr);
  network_.stop(listener_);
  listener_ = nullptr;
}

int SocketFile::set_option(int level, int name, int value) {
  if (level == SOL_SOCKET && name == SO_REUSEPORT) options_.reuse_port = value != 0;
  if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY) options_.v6_only = value != 0;
  return 0;
}

int SocketFile::bind(const net::Address& address) {
  if (bound_) return -EINVAL;
  if (address.family() != family_) return -EAFNOSUPPORT;
  local_ = address;
  const int result = network_.bind(local_, options_);
  bound_ = result == 0;
  return result;
}

int SocketFile::listen(int backlog) {
  if (stream_ != nullptr || dial_ != nullptr) return -EINVAL;
  if (listener_ != nullptr) return 0;
  if (!bound_) {
    if (family_ == AF_UNIX) return -EINVAL;
    local_ = network_.ephemeral(family_);
    const int result = network_.bind(local_, options_);
    if (result < 0) return result;
    bound_ = true;
  }
  listener_ = network_.listen(local_, static_cast<unsigned>(std::max(backlog, 1)));
  listener_->set_waker(this);
  return 0;
}

int SocketFile::connect(const net::Address& address) {
  if (stream_ != nullptr) return -EISCONN;
  if (listener_ != nullptr) return -EINVAL;
  if (dial_ == nullptr) {
    dial_ = network_.dial(bound_ ? local_ : network_.ephemeral(address.family()), address);
    dial_->waker = this;
  }
  if (!dial_->done) return -EINPROGRESS;
  auto dial = std::exchange(dial_, nullptr);
  dial->waker = nullptr;
  if (dial->result != 0) return dial->result;
  stream_ = std::exchange(dial->stream, nullptr);
  stream_->set_waker(this);
  return 0;
}

std::shared_ptr<SocketFile> SocketFile::accept(int* error) {
  *error = -EINVAL;
  if (listener_ == nullptr) return nullptr;
  auto stream = listener_->accept();
  *error = stream != nullptr ? 0 : -EAGAIN;
  if (stream == nullptr) return nullptr;
  return std::make_shared<SocketFile>(network_, std::move(stream));
}

int SocketFile::read(char* out, std::size_t room, bool peek) {
  if (stream_ == nullptr) return dial_ != nullptr ? -EAGAIN : not_connected(-ENOTCONN, -EINVAL);
  if (tls_ != nullptr && tls_->opens()) return tls_->read(*stream_, out, room, peek);
  return stream_->read(out, room, peek);
}

int SocketFile::write(const char* data, std::size_t bytes, const std::shared_ptr<void>& hold) {
  if (stream_ == nullptr) return dial_ != nullptr ? -EAGAIN : not_connected(-EPIPE, -ENOTCONN);
  if (tls_ != nullptr && tls_->sends()) return tls_->write(*stream_, RecordType::data, data, bytes);
  return stream_->write(data, bytes, hold);
}

int SocketFile::attach_tls() {
  if (family_ == AF_UNIX) return -EOPNOTSUPP;
  if (stream_ == nullptr || stream_->read_ended()) return -ENOTCONN;
  if (tls_ != nullptr) return -EEXIST;
  tls_ = std::make_unique<KernelTls>();
  return 0;
}

int SocketFile::install_keys(bool tx, const RecordKeys& keys) {
  return tls_ != nullptr ? tls_->install(tx, keys) : -ENOPROTOOPT;
}

bool SocketFile::has_bytes() {
  if (stream_ == nullptr) return false;
  if (tls_ == nullptr || !tls_->opens()) return stream_->readable_bytes() != 0;
  return tls_->has_data(*stream_);
}

int SocketFile::shutdown(int how) {
  if (how < SHUT_RD || how > SHUT_RDWR) return -EINVAL;
  if (listener_ != nullptr) {
    // Only the receiving side of a listener means something: it ends listening. A unix listener
    // does not wake those who wait for a connection.
    if (how != SHUT_WR) stop_listening();
    if (family_ != AF_UNIX) on_ready();
    return 0;
  }
  if (dial_ != nullptr) {
    dial_->waker = nullptr;
    dial_ = std::make_shared<Dial>();
    dial_->done = true;
    dial_->result = -ECONNRESET;
    on_ready();
    return 0;
  }
  return stream_ != nullptr ? stream_->shutdown(how) : -ENOTCONN;
}

unsigned SocketFile::poll_events() {
  if (listener_ != nullptr) return listener_->waiting() ? POLLIN | POLLRDNORM : 0;
  if (stream_ != nullptr) {
    const unsigned events = stream_->poll_events();
    if (tls_ == nullptr || !tls_->opens()) return events;
    constexpr unsigned in = POLLIN | POLLRDNORM;
    return tls_->readable(*stream_) ? events | in : events & ~in;
  }
  if (dial_ != nullptr && !dial_->done) return 0;
  return POLLOUT | POLLWRNORM | POLLHUP;
}

std::string SocketFile::describe() const {
  if (listener_ != nullptr) {
    return listener_->waiting() ? "a listening socket with somebody waiting" : "a listening socket";
  }
  if (dial_ != nullptr) return "a connecting socket";
  if (stream_ == nullptr) return bound_ ? "a bound socket" : "a fresh socket";
  std::string out = accepted_ ? "an accepted socket" : "a connected socket";
  out += ", " + std::to_string(stream_->readable_bytes()) + " bytes to read";
  if (stream_->read_ended()) out += ", ended";
  return out;
}

int SocketFile::peer_address(net::Address* out) const {
  if (stream_ == nullptr) return -ENOTCONN;
  *out = stream_->peer_address();
  return 0;
}

int FileTable::open(std::shared_ptr<File> file) {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (files_[i] != nullptr) continue;
    files_[i] = std::move(file);
    return first + static_cast<int>(i);
  }
  files_.push_back(std::move(file));
  return first + static_cast<int>(files_.size()) - 1;
}

std::shared_ptr<File> FileTable::get(int fd) const {
  const std::size_t at = static_cast<std::size_t>(fd) - first;
  return fd >= first && at < files_.size() ? files_[at] : nullptr;
}

std::shared_ptr<SocketFile> FileTable::socket(int fd) const {
  auto file = get(fd);
  if (file == nullptr || file->kind() != File::Kind::socket) return nullptr;
  return std::static_pointer_cast<SocketFile>(file);
}

bool FileTable::close(int fd) {
  if (get(fd) == nullptr) return false;
  // Out of the table first: the end of a file may look at the table.
  auto file = std::exchange(files_[static_cast<std::size_t>(fd - first)], nullptr);
  return true;
}

std::vector<int> FileTable::in_use() const {
  std::vector<int> out;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (files_[i] != nullptr) out.push_back(first + static_cast<int>(i));
  }
  return out;
}

}  // namespace ringside::sim
