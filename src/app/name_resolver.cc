#include "name_resolver.h"

#include <netdb.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

namespace ringside::app {
namespace {

using Clock = std::chrono::steady_clock;
using base::LogLevel;

// A lookup that hangs for its full time must not hold up the other names.
constexpr std::size_t threads_max = 4;

bool is_localhost(const std::string& name) {
  return name == "localhost" || name.ends_with(".localhost");
}

int lookup(const std::string& name, int flags, addrinfo** list) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  return ::getaddrinfo(name.c_str(), nullptr, &hints, list);
}

// "10.0.0.1, 10.0.0.2"
std::string list_of(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts)
    out += (out.empty() ? "" : ", ") + text;
  return out;
}

std::vector<std::string> sorted_texts(const std::vector<net::Address>& addresses) {
  std::vector<std::string> texts;
  for (const net::Address& address : addresses) {
    char text[64];
    texts.emplace_back(text, address.write_ip(text, sizeof text));
  }
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return texts;
}

}  // namespace

net::Address with_port(const net::Address& address, std::uint16_t port) {
  net::Address copy = address;
  if (copy.family() == AF_INET) reinterpret_cast<sockaddr_in*>(copy.raw())->sin_port = htons(port);
  if (copy.family() == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(copy.raw())->sin6_port = htons(port);
  }
  return copy;
}

std::expected<std::vector<net::Address>, std::string> resolve_by_system(const std::string& name) {
  addrinfo* list = nullptr;
  // AI_ADDRCONFIG leaves out the family that this machine has no address of. Where it leaves
  // nothing (a machine with loopback only), anything is better.
  int result = lookup(name, is_localhost(name) ? 0 : AI_ADDRCONFIG, &list);
  if (result == EAI_NONAME || result == EAI_NODATA || result == EAI_ADDRFAMILY) {
    result = lookup(name, 0, &list);
  }
  if (result != 0) {
    return std::unexpected(
        std::string(result == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(result)));
  }
  std::vector<net::Address> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    addresses.push_back(net::Address::from_raw(entry->ai_addr, entry->ai_addrlen));
  }
  ::freeaddrinfo(list);
  if (addresses.empty()) return std::unexpected("no IPv4 or IPv6 address");
  return addresses;
}

std::vector<ResolverTarget> resolver_targets(const config::Snapshot& snapshot,
                                             const upstream::Directory& directory) {
  std::vector<ResolverTarget> targets;
  for (std::uint32_t u = 0; u < directory.size(); ++u) {
    for (std::uint32_t s = 0; s < directory.servers(u); ++s) {
      const auto& server = directory.share(u, s);
      if (server->needs_resolving()) {
        targets.push_back({server, snapshot.upstreams[u].resolve_interval_ms});
      }
    }
  }
  return targets;
}

// Shared by the owner and the threads, so that a thread that hangs in a lookup may outlive the
// NameResolver. `mutex` guards everything below it; `logger` is used under it and only while
// `stopping` is false, which is why stop() can promise silence.
struct NameResolver::State {
  struct Name {
    std::vector<std::shared_ptr<upstream::SharedServer>> servers;
    std::chrono::milliseconds interval{};
    Clock::time_point due{};
    bool in_work = false;
    bool done_once = false;
    std::vector<std::string> known;  // sorted, for comparison and for the log
  };

  State(base::Logger& log_to, Resolve how) : resolve(std::move(how)), logger(log_to) {}

  const Resolve resolve;
  base::Logger& logger;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, Name> names;
  bool stopping = false;

  static void work(const std::shared_ptr<State>& state);
  std::map<std::string, Name>::iterator next_due();
  void publish(const std::string& name, Name& entry, const std::vector<net::Address>& addresses);
  void report_failure(const std::string& name, const Name& entry, const std::string& text);
  bool first_round_done() const;
};

std::map<std::string, NameResolver::State::Name>::iterator NameResolver::State::next_due() {
  auto best = names.end();
  for (auto at = names.begin(); at != names.end(); ++at) {
    if (at->second.in_work) continue;
    if (best == names.end() || at->second.due < best->second.due) best = at;
  }
  return best;
}

bool NameResolver::State::first_round_done() const {
  return std::all_of(names.begin(), names.end(),
                     [](const auto& entry) { return entry.second.done_once; });
}

void NameResolver::State::publish(const std::string& name, Name& entry,
                                  const std::vector<net::Address>& addresses) {
  std::vector<std::string> texts = sorted_texts(addresses);
  // DNS servers like to rotate their answers; the same set in another order is no change.
  if (texts == entry.known) return;
  for (const auto& server : entry.servers) {
    std::vector<net::Address> with_ports;
    with_ports.reserve(addresses.size());
    for (const net::Address& address : addresses) {
      with_ports.push_back(with_port(address, server->config().endpoint.port));
    }
    server->set_addresses(std::move(with_ports));
  }
  logger.log(LogLevel::info, "resolve",
             name + " is " + list_of(texts) +
                 (entry.known.empty() ? "" : ", was " + list_of(entry.known)));
  entry.known = std::move(texts);
}

void NameResolver::State::report_failure(const std::string& name, const Name& entry,
                                         const std::string& text) {
  logger.log(LogLevel::warn, "resolve",
             name + ": " + text +
                 (entry.known.empty() ? "; it has no address yet, and is tried again"
                                      : "; it stays " + list_of(entry.known)));
}

void NameResolver::State::work(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (!state->stopping) {
    const auto next = state->next_due();
    if (next == state->names.end()) {
      state->changed.wait(lock);
      continue;
    }
    if (next->second.due > Clock::now()) {
      state->changed.wait_until(lock, next->second.due);
      continue;
    }
    const std::string& name = next->first;
    Name& entry = next->second;
    entry.in_work = true;
    lock.unlock();
    const auto found = state->resolve(name);
    lock.lock();
    entry.in_work = false;
    if (state->stopping) return;
    entry.due = Clock::now() + entry.interval;
    if (found) {
      state->publish(name, entry, *found);
    } else {
      state->report_failure(name, entry, found.error());
    }
    entry.done_once = true;
    state->changed.notify_all();
  }
}

NameResolver::NameResolver(const std::vector<ResolverTarget>& targets, base::Logger& logger,
                           Resolve resolve)
    : state_(std::make_shared<State>(logger, std::move(resolve))) {
  for (const ResolverTarget& target : targets) {
    State::Name& entry = state_->names[target.server->config().endpoint.host];
    const auto interval = std::chrono::milliseconds(std::max<std::uint64_t>(target.interval_ms, 1));
    if (entry.servers.empty() || interval < entry.interval) entry.interval = interval;
    entry.servers.push_back(target.server);
  }
  const std::size_t threads = std::min(state_->names.size(), threads_max);
  for (std::size_t i = 0; i < threads; ++i) {
    try {
      std::thread thread([state = state_] { State::work(state); });
      ::pthread_setname_np(thread.native_handle(), "resolver");
      thread.detach();
    } catch (const std::system_error& error) {
      logger.log(LogLevel::error, "resolve", std::string("no thread: ") + error.what());
      break;
    }
  }
}

NameResolver::~NameResolver() {
  stop();
}

bool NameResolver::wait_for_first_round(std::uint64_t timeout_ms) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                                  [this] { return state_->first_round_done(); });
}

void NameResolver::stop() {
  const std::lock_guard lock(state_->mutex);
  state_->stopping = true;
  state_->changed.notify_all();
}

}  // namespace ringside::app
