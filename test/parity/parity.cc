#include "parity.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ostream>

namespace ringside::parity {

namespace {
// The loop counts as idle after this many turns without a completion. The real kernel delivers over
// loopback within microseconds; the wait only bounds a failing test, and tells waiting operations
// from finished ones in tests that stay right when it is too short.
constexpr unsigned idle_turns_max = 3;
constexpr base::Millis idle_turn_ms = 10;
constexpr unsigned await_turns_max = 200;
}  // namespace

std::ostream& operator<<(std::ostream& out, const Event& event) {
  out << "{kind " << int{event.kind} << ", result " << event.result;
  if (event.more) out << ", more";
  if (event.buffer) out << ", buffer";
  if (event.notification) out << ", notification";
  if (!event.data.empty()) out << ", \"" << event.data.substr(0, 40) << '"';
  return out << '}';
}

Recorder::Recorder(ring::Ring& ring, ring::BufferGroup* group) : ring_(ring), group_(group) {
  EXPECT_TRUE(ring.attach(*this));
}

Recorder::~Recorder() {
  EXPECT_EQ(in_flight(), 0U) << "an operation is still in flight";
  if (in_flight() == 0) ring_.detach(*this);
}

void Recorder::on_complete(std::uint8_t kind, const ring::Completion& completion) {
  Event event{.kind = kind,
              .result = completion.result,
              .more = completion.more(),
              .buffer = completion.has_buffer(),
              .notification = completion.notification(),
              .data = {}};
  if (event.notification) event.result = 0;  // it may say "copied", which is the kernel's choice
  if (group_ != nullptr && completion.has_buffer()) {
    for (ring::Bundle bundle(*group_, completion); !bundle.empty();) {
      ring::Lease lease = bundle.next();
      event.data += lease.bytes();
      if (hold_leases) leases.push_back(std::move(lease));
    }
  }
  events_.push_back(std::move(event));
}

std::size_t Recorder::pending(std::uint8_t kind) const {
  return static_cast<std::size_t>(std::count_if(
      events_.begin(), events_.end(), [&](const Event& event) { return event.kind == kind; }));
}

std::vector<Event> Recorder::take_all(std::uint8_t kind) {
  std::vector<Event> taken;
  std::erase_if(events_, [&](const Event& event) {
    if (event.kind != kind) return false;
    taken.push_back(event);
    return true;
  });
  return taken;
}

void ParityBase::SetUp() {
  environment_ = GetParam().make();
  auto ring = ring::Ring::open(environment_->kernel(), {.entries = 64, .completion_entries = 256});
  ASSERT_TRUE(ring.has_value()) << ring::Ring::explain(ring.error());
  ring_ = std::move(*ring);
  auto group = ring::BufferGroup::create(*ring_, 0, buffer_count, buffer_bytes, true);
  ASSERT_TRUE(group.has_value()) << base::describe(group.error().code);
  group_ = std::move(*group);
  helper_ = std::make_unique<Recorder>(*ring_, group_.get());
}

void ParityBase::TearDown() {
  helper_.reset();
  if (group_ != nullptr) {
    EXPECT_EQ(group_->leased(), 0U);
  }
  group_.reset();
  if (ring_ != nullptr) {
    EXPECT_EQ(ring_->attached(), 0U);
    EXPECT_EQ(ring_->counters().stale_completions, 0U);
  }
  ring_.reset();
}

Event ParityBase::await(Recorder& recorder, std::uint8_t kind) {
  auto is_it = [&](const Event& event) { return event.kind == kind; };
  auto& events = recorder.events_;
  unsigned idle = 0;
  for (unsigned i = 0; i < await_turns_max && idle < 3 * idle_turns_max; ++i) {
    auto found = std::find_if(events.begin(), events.end(), is_it);
    if (found != events.end()) {
      Event event = std::move(*found);
      events.erase(found);
      return event;
    }
    idle = ring_->run_once(idle_turn_ms * 20) == 0 ? idle + 1 : 0;
  }
  ADD_FAILURE() << "no completion of kind " << int{kind};
  return {.kind = kind, .result = INT_MIN, .data = {}};
}

void ParityBase::settle() {
  unsigned idle = 0;
  for (unsigned i = 0; i < 10'000 && idle < idle_turns_max; ++i)
    idle = ring_->run_once(idle_turn_ms) == 0 ? idle + 1 : 0;
}

void ParityBase::await_end(Recorder& recorder) {
  for (unsigned i = 0; i < await_turns_max && recorder.in_flight() != 0; ++i)
    ring_->run_once(idle_turn_ms);
  EXPECT_EQ(recorder.in_flight(), 0U);
}

int ParityBase::open_socket() {
  auto fd = sys().open_stream_socket(inet() ? AF_INET : AF_UNIX);
  EXPECT_TRUE(fd.has_value());
  return fd.value_or(-1);
}

net::Address ParityBase::free_address() {
  if (inet()) return *net::Address::from_ip("127.0.0.1", 0);
  return environment_->unix_address(addresses_++);
}

ParityBase::Listener ParityBase::listen(int backlog) {
  Listener listener{.fd = open_socket(), .address = {}};
  EXPECT_EQ(sys().bind(listener.fd, free_address()), 0);
  EXPECT_EQ(sys().listen(listener.fd, backlog), 0);
  auto address = sys().local_address(listener.fd);
  EXPECT_TRUE(address.has_value());
  listener.address = address.value_or(net::Address());
  return listener;
}

std::int32_t ParityBase::connect(int fd, const net::Address& address) {
  ring_->connect(*helper_, kind_connect, fd, address.raw(), address.length());
  return await(*helper_, kind_connect).result;
}

ParityBase::Pair ParityBase::connect_pair() {
  Listener listener = listen();
  Pair pair{.client = open_socket(), .server = -1};
  EXPECT_EQ(connect(pair.client, listener.address), 0);
  pair.server = accept_one(listener.fd);
  close(listener.fd);
  return pair;
}

int ParityBase::accept_one(int listener_fd, net::Address* peer) {
  EXPECT_EQ(sys().set_nonblocking(listener_fd, true), 0);
  net::Address unnamed;
  int fd = -EAGAIN;
  for (unsigned i = 0; i < await_turns_max && fd == -EAGAIN; ++i) {
    fd = sys().accept_now(listener_fd, peer != nullptr ? *peer : unnamed);
    if (fd == -EAGAIN) ring_->run_once(1);
  }
  EXPECT_GE(fd, 0);
  EXPECT_EQ(sys().set_nonblocking(listener_fd, false), 0);
  return fd;
}

void ParityBase::await_hang_up(int fd) {
  ring_->poll(*helper_, kind_poll, fd, POLLRDHUP);
  EXPECT_GT(await(*helper_, kind_poll).result, 0);
}

void ParityBase::send_all(int fd, std::string_view data) {
  while (!data.empty()) {
    ring_->send(*helper_, kind_send, fd, data.data(), data.size(), MSG_NOSIGNAL);
    std::int32_t result = await(*helper_, kind_send).result;
    ASSERT_GT(result, 0);
    data.remove_prefix(static_cast<std::size_t>(result));
  }
}

std::function<void(std::string_view)> ParityBase::sender(Recorder& recorder, int fd) {
  return [this, &recorder, fd](std::string_view data) {
    ring_->send(recorder, kind_send, fd, data.data(), data.size(), MSG_NOSIGNAL);
  };
}

void ParityBase::shutdown(int fd, int how) {
  EXPECT_EQ(sys().shutdown(fd, how), 0);
}

void ParityBase::close(int fd) {
  ring_->close(*helper_, kind_close, fd);
  EXPECT_EQ(await(*helper_, kind_close), event(kind_close, 0));
}

std::string ParityBase::receive_some(int fd, std::size_t bytes) {
  std::string data;
  while (data.size() < bytes) {
    ring_->receive(*helper_, kind_receive, fd, *group_);
    Event got = await(*helper_, kind_receive);
    EXPECT_GE(got.result, 0);
    if (got.result <= 0) break;
    data += got.data;
  }
  return data;
}

bool ParityBase::sees_end(int fd) {
  ring_->receive(*helper_, kind_receive, fd, *group_);
  Event got = await(*helper_, kind_receive);
  EXPECT_LE(got.result, 0) << got;
  return got.result == 0;
}

std::string column_name(const testing::TestParamInfo<Column>& info) {
  return info.param.name;
}

std::string pattern(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i)
    text[i] = static_cast<char>('a' + (i + i / 26 + i / 676) % 26);
  return text;
}

}  // namespace ringside::parity
