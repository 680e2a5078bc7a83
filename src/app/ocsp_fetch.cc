#include "ocsp_fetch.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace ringside::app {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

std::string system_text(int number) {
  return std::generic_category().message(number);
}

// Waits until `descriptor` is ready; otherwise why not.
std::optional<std::string> wait_for(int descriptor, short events, int cancel,
                                    Clock::time_point until) {
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
    if (left <= 0) return "no answer in time";
    pollfd entries[] = {{descriptor, events, 0}, {cancel, POLLIN, 0}};
    const int ready = ::poll(entries, std::size(entries), static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return system_text(errno);
    if (ready <= 0) continue;
    if (entries[1].revents != 0) return "stopped";
    return std::nullopt;
  }
}

// A lookup cannot be cancelled, so it has a thread that may outlive whoever asked.
struct Lookup {
  Descriptor done{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex mutex;
  std::expected<std::vector<net::Address>, std::string> result = std::unexpected("no answer");
};

std::expected<std::vector<net::Address>, std::string> look_up(const std::string& host, int cancel,
                                                              Clock::time_point until,
                                                              const Resolve& resolve) {
  auto lookup = std::make_shared<Lookup>();
  if (lookup->done.get() < 0) return std::unexpected(system_text(errno));
  try {
    std::thread thread([lookup, host, resolve] {
      auto found = resolve(host);
      const std::lock_guard lock(lookup->mutex);
      lookup->result = std::move(found);
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto written = ::write(lookup->done.get(), &one, sizeof one);
    });
    ::pthread_setname_np(thread.native_handle(), "ocsp-resolver");
    thread.detach();
  } catch (const std::system_error& error) {
    return std::unexpected(std::string("no thread: ") + error.what());
  }
  if (auto why = wait_for(lookup->done.get(), POLLIN, cancel, until))
    return std::unexpected(host + ": " + *why);
  const std::lock_guard lock(lookup->mutex);
  if (!lookup->result) return std::unexpected(host + ": " + lookup->result.error());
  return lookup->result;
}

std::optional<std::string> connect_to(int socket, const net::Address& address, int cancel,
                                      Clock::time_point until) {
  if (socket < 0) return system_text(errno);
  if (::connect(socket, address.raw(), address.length()) == 0) return std::nullopt;
  if (errno != EINPROGRESS) return system_text(errno);
  if (auto why = wait_for(socket, POLLOUT, cancel, until)) return why;
  int problem = 0;
  socklen_t size = sizeof problem;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &problem, &size) != 0) problem = errno;
  if (problem != 0) return system_text(problem);
  return std::nullopt;
}

std::expected<tls::Der, std::string> transfer(int socket, const tls::OcspQuestion& question,
                                              int cancel, Clock::time_point until) {
  using Step = tls::OcspTransfer::Step;
  const auto transfer = tls::OcspTransfer::make(socket, question);
  if (transfer == nullptr) return std::unexpected("no memory");
  while (true) {
    const Step step = transfer->advance();
    if (step == Step::done) return transfer->response();
    if (step == Step::failed) return std::unexpected(transfer->failure());
    const short events = step == Step::wants_to_read ? POLLIN : POLLOUT;
    if (auto why = wait_for(socket, events, cancel, until)) return std::unexpected(*why);
  }
}

}  // namespace

std::expected<tls::Der, std::string> fetch_ocsp(const tls::OcspQuestion& question, int cancel,
                                                milliseconds limit, const Resolve& resolve) {
  const auto until = Clock::now() + limit;
  std::uint16_t port = 0;
  const char* end = question.port.data() + question.port.size();
  if (std::from_chars(question.port.data(), end, port).ptr != end || port == 0)
    return std::unexpected("port " + question.port + " is none");
  const auto addresses = look_up(question.host, cancel, until, resolve);
  if (!addresses) return std::unexpected(addresses.error());
  std::string problem = "no address";
  for (std::size_t i = 0; i < addresses->size(); ++i) {
    // What is left is shared out, so that one that does not answer leaves time for the next.
    const auto now = Clock::now();
    const auto share = (until - now) / static_cast<long>(addresses->size() - i);
    const net::Address address = with_port((*addresses)[i], port);
    const Descriptor socket(
        ::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    auto why = connect_to(socket.get(), address, cancel, now + share);
    if (!why) return transfer(socket.get(), question, cancel, until);
    problem = address.to_string() + ": " + *why;
  }
  return std::unexpected(problem);
}

}  // namespace ringside::app
