#include "client_peer.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "marks.h"

namespace ringside::sim {

namespace {
constexpr std::uint64_t continue_wait_ns = second_ns;
}  // namespace

ClientPeer::ClientPeer(Core& core, Referee& referee, const net::Address& to,
                       std::vector<std::uint32_t> ids, Over over, bool secure)
    : DiallingPeer(core, referee, to, std::move(over), secure), ids_(std::move(ids)) {}

void ClientPeer::connected(std::shared_ptr<Stream> stream) {
  attach(std::move(stream), secure_ ? std::make_unique<TlsPeer>(core_, TlsEnd::Role::client, false,
                                                                early_ ? &*early_ : nullptr)
                                    : nullptr);
  send_more();
}

std::uint64_t ClientPeer::upstream_active_ns() {
  std::uint64_t out = 0;
  for (std::size_t at = 0; at < sending_; ++at)
    out = std::max(out, course(at).active_ns);
  return out;
}

const Course* ClientPeer::waits_for() {
  return waiting_for_answer() ? &course(answering_) : nullptr;
}

void ClientPeer::send_more() {
  while (sending_ < ids_.size() && !must_close_) {
    const bool idle = sending_ == answering_;
    if (!idle && (!course(sending_).script.pipelined || holding_ != none)) return;
    // It was told to wait until then.
    if (course(sending_).too_early != 0 && early()) return;
    if (sending_ != 0 && course(sending_ - 1).script.last_on_connection()) return;
    send_request(sending_++);
  }
}

void ClientPeer::send_request(std::size_t at) {
  const Script& script = course(at).script;
  const std::uint64_t begin = bytes_queued();
  const bool early_before = early_ && (early() || at != answering_);
  if (at == answering_) reader_.begin(script.ask == Ask::head);
  send(script.request_head());
  if (script.expect) {
    held_body_ = script.request_body();
    holding_ = at;
    core_.clock.after(continue_wait_ns, [this, at] {
      if (holding_ == at && !closed()) send_rest();
    });
  } else {
    send(script.request_body());
  }
  if (script.ask == Ask::upgrade && script.early_tunnel &&
      script.answer == Answer::switch_protocols) {
    send(marked(script.id, Lane::tunnel_up, 0, script.tunnel_up_bytes));
    finish();
  }
  sent_.push_back({begin, bytes_queued()});
  course(at).asked({.early = early_ ? early_->state : nullptr,
                    .end = bytes_queued(),
                    .maybe_early = early_before});
  if (script.conduct == Conduct::abort_sending) stop_sending_at(begin + script.abort_after);
  if (script.stalls) {
    stop_sending_at(begin + script.request_head().size() + script.request_body().size() / 2);
  }
  if (script.conduct == Conduct::half_close && holding_ == none) finish();
  if (script.conduct == Conduct::slow_reader) {
    const std::size_t bytes = 1 + script.response_bytes / 40;
    set_pace(
        {.bytes = bytes, .pause_ns = core_.random.between(1, 150) * millisecond_ns, .steps = 80});
  }
  wake_after(0);
}

void ClientPeer::send_rest() {
  const std::size_t at = std::exchange(holding_, none);
  send(std::exchange(held_body_, {}));
  sent_[at].end = course(at).sent.end = bytes_queued();
  if (course(at).script.conduct == Conduct::half_close) finish();
  send_more();
  wake_after(0);
}

// The final answer came first: the body is not sent, so nothing can follow on this connection.
void ClientPeer::expect_over() {
  if (holding_ != answering_) return;
  holding_ = none;
  held_body_.clear();
  must_close_ = true;
}

// The first waits for the handshake, whose time counts with it.
void ClientPeer::begun(Course& c, bool first) {
  referee_.begun(c, harm_before_);
  c.secure = secure_;
  if (secure_ && first) c.begun_ns = dialled_ns_;
}

void ClientPeer::on_sent() {
  active();
  for (std::size_t at = 0; at < sent_.size(); ++at) {
    Course& c = course(at);
    if (bytes_sent() > sent_[at].begin && !c.begun) begun(c, at == 0);
    if (bytes_sent() >= sent_[at].end && holding_ != at) c.sent_whole = true;
  }
  if (tunnel_ended_ && drained()) return connection_over(false);
  if (sending_ == 0) return;
  const Script& last = course(sending_ - 1).script;
  if (last.conduct == Conduct::abort_sending &&
      bytes_sent() >= sent_[sending_ - 1].begin + last.abort_after) {
    leave();
  }
}

void ClientPeer::on_data(std::string_view data) {
  active();
  received_ += data.size();
  while (!data.empty() && !closed() && !ignoring_) {
    if (tunnel_) return tunnel_data(data);
    if (!waiting_for_answer()) {
      return referee_.fail("bytes that no request asked for: " + std::string(data.substr(0, 80)));
    }
    const std::size_t used = feed(data);
    data.remove_prefix(used);
    if (referee_.failed()) return leave();
  }
  if (closed() || !waiting_for_answer()) return;
  const Script& script = course(answering_).script;
  if (script.conduct == Conduct::abort_reading && received_ > script.abort_after) leave();
}

std::size_t ClientPeer::feed(std::string_view data) {
  Course& c = course(answering_);
  const std::size_t used = reader_.feed(data);
  if (reader_.state() == MessageReader::State::failed) {
    referee_.fail("not HTTP: " + reader_.why() + ": " + to_string(c));
    return data.size();
  }
  if (!head_seen_ && reader_.state() != MessageReader::State::head) {
    head_seen_ = true;
    head_arrived(c);
  }
  if (!reader_.piece().empty()) referee_.got_body(c, reader_.piece());
  if (reader_.state() == MessageReader::State::done) message_over(c);
  return used;
}

void ClientPeer::head_arrived(Course& c) {
  const int status = reader_.status();
  if (status < 200 && status != 101) {
    if (c.script.http10) referee_.fail("an interim response for 1.0: " + to_string(c));
    return;
  }
  referee_.got_head(c, status, reader_.value("x-sim-id"));
  if (reader_.has("keep-alive")) referee_.fail("a hop-by-hop field came through");
  if (c.script.http10 && reader_.framing() == MessageReader::Framing::chunked) {
    referee_.fail("a chunked response for 1.0: " + to_string(c));
  }
}

void ClientPeer::message_over(Course& c) {
  head_seen_ = false;
  const int status = reader_.status();
  if (status == 101) {
    tunnel_ = true;
    if (c.script.ask != Ask::upgrade) referee_.fail("an upgrade unasked: " + to_string(c));
    if (!c.script.early_tunnel) {
      send(marked(c.script.id, Lane::tunnel_up, 0, c.script.tunnel_up_bytes));
      finish();
    }
    return wake_after(0);
  }
  if (status < 200) {
    if (status == 100 && holding_ == answering_) send_rest();
    if (status == 103) ++c.interims;
    return reader_.begin(c.script.ask == Ask::head);
  }
  if (reader_.value_is("connection", "close") || c.script.last_on_connection()) must_close_ = true;
  expect_over();
  // Who refuses a head that never became whole does not know that it was to be a HEAD.
  ignoring_ = status == 408 && c.script.ask == Ask::head;
  if (status == 425) return ask_again(c);
  exchange_over(c, true);
}

void ClientPeer::tunnel_data(std::string_view data) {
  Course& c = course(answering_);
  const std::size_t wrong = first_wrong(c.script.id, Lane::tunnel_down, c.tunnel_bytes, data);
  if (wrong != std::string_view::npos) {
    referee_.fail("a wrong byte in a tunnel: " + to_string(c));
  }
  c.tunnel_bytes += data.size();
  if (c.script.conduct == Conduct::abort_reading && received_ > c.script.abort_after) leave();
}

void ClientPeer::exchange_over(Course& c, bool complete) {
  c.complete = complete;
  referee_.ended(c);
  next_answer(c);
}

// As a request of its own, once the handshake is over (RFC 8470 §5.2).
void ClientPeer::ask_again(Course& c) {
  referee_.too_early(c);
  ids_.insert(ids_.begin() + static_cast<std::ptrdiff_t>(sending_), c.script.id);
  next_answer(c);
}

void ClientPeer::next_answer(const Course& c) {
  ++answering_;
  received_ = 0;
  if (!waiting_for_answer() && (must_close_ || answering_ == ids_.size())) {
    // Mostly the client closes; now and then it waits for the other end to. What it sent early for
    // a tunnel that it did not get would be taken for a request.
    if (!must_close_ || c.script.early_tunnel || core_.random.coin()) {
      close();
      report();
    }
    return;
  }
  if (waiting_for_answer()) return reader_.begin(course(answering_).script.ask == Ask::head);
  core_.clock.after(core_.random.between(0, 20 * millisecond_ns), [this] {
    if (closed()) return;
    send_more();
    wake_after(0);
  });
}

// Goes away, whatever is going on.
void ClientPeer::leave() {
  if (reported()) return;
  const bool by_reset = sending_ != 0 && course(sending_ - 1).script.abort_with_reset;
  for (std::size_t at = answering_; at < sending_; ++at)
    course(at).client_left = true;
  if (by_reset) {
    reset();
  } else {
    close();
  }
  connection_over(true);
}

void ClientPeer::on_end() {
  if (tunnel_) {
    // The other direction may still be under way: the exchange ends when both have.
    tunnel_ended_ = true;
    if (drained()) connection_over(false);
    return;
  }
  connection_over(false);
}

void ClientPeer::on_error(int error) {
  if (error == EPROTO) referee_.fail("a client got what is no record");
  connection_over(true);
}

void ClientPeer::connection_over(bool was_reset) {
  if (reported()) return;
  if (!was_reset && waiting_for_answer() && head_seen_) {
    reader_.end_of_stream();
    if (reader_.state() == MessageReader::State::done) message_over(course(answering_));
  }
  if (reported()) return;
  while (waiting_for_answer()) {
    Course& c = course(answering_);
    if (!c.begun) break;
    c.complete = tunnel_ && !was_reset;
    referee_.ended(c);
    ++answering_;
  }
  close();
  report();
}

std::vector<std::uint32_t> ClientPeer::rest() const {
  return {ids_.begin() + static_cast<std::ptrdiff_t>(answering_), ids_.end()};
}

}  // namespace ringside::sim
