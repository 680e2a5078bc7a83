#include "upstream_peer.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "h2_upstream_peer.h"
#include "marks.h"

namespace ringside::sim {

namespace {

// "GET /e/17 HTTP/1.1" -> "/e/17".
std::string_view target_in(std::string_view start_line) {
  start_line.remove_prefix(start_line.find(' ') + 1);
  return start_line.substr(0, start_line.rfind(' '));
}

}  // namespace

UpstreamConnection::UpstreamConnection(Core& core, Referee& referee, std::shared_ptr<Stream> stream,
                                       bool secure)
    : PeerConnection(core), referee_(referee) {
  attach(std::move(stream),
         secure ? std::make_unique<TlsPeer>(core, TlsEnd::Role::server) : nullptr);
}

void UpstreamConnection::moved() {
  referee_.progress();
  if (course_ != nullptr) course_->active_ns = core_.clock.now_ns();
}

void UpstreamConnection::on_data(std::string_view data) {
  moved();
  while (!data.empty() && !closed()) {
    if (tunnel_) return tunnel_data(data);
    // A server that is going to close reads no further request.
    if (ending_ && request_whole_) return;
    const std::size_t used = reader_.feed(data);
    data.remove_prefix(used);
    if (reader_.state() == MessageReader::State::failed) {
      referee_.fail("a bad request reached an upstream: " + reader_.why());
      return reset();
    }
    if (!head_seen_ && reader_.state() != MessageReader::State::head) head_arrived();
    if (closed()) return;
    if (course_ == nullptr) continue;  // the head is not whole yet
    if (!reader_.piece().empty()) body_arrived(*course_);
    if (reader_.state() == MessageReader::State::done && !request_whole_) request_over(*course_);
    if (used == 0 && !tunnel_) return;
  }
}

void UpstreamConnection::head_arrived() {
  head_seen_ = true;
  course_ = referee_.upstream_got_head(target_in(reader_.start_line()));
  if (course_ == nullptr) return reset();
  Course& c = *course_;
  const bool early = reader_.value_is("early-data", "1");
  referee_.judge_early(c, early);
  too_early_ = early && c.script.may_be_early() && c.upstream_too_early == 0 &&
               core_.faults.hit(Fault::too_early);
  check_head(c);
  const bool asks_first = reader_.has("expect");
  if (c.script.early_answer) return answer(c);
  if (asks_first && c.script.answer != Answer::never) send("HTTP/1.1 100 Continue\r\n\r\n");
}

void UpstreamConnection::check_head(const Course& c) {
  const Script& s = c.script;
  const std::string method = s.has_request_body() ? "POST " : s.ask == Ask::head ? "HEAD " : "GET ";
  if (!reader_.start_line().starts_with(method + s.target() + " HTTP/1.")) {
    referee_.fail("the request line was changed: " + reader_.start_line() + ": " + to_string(c));
  }
  if (!reader_.value_is("host", "sim.test")) referee_.fail("a wrong Host: " + to_string(c));
  if (!reader_.has("via")) referee_.fail("no Via: " + to_string(c));
  if (reader_.has("upgrade") != (s.ask == Ask::upgrade)) {
    referee_.fail("Upgrade was lost or made up: " + to_string(c));
  }
  const bool bodied = reader_.framing() != MessageReader::Framing::none;
  if (bodied != s.has_request_body()) referee_.fail("the framing was changed: " + to_string(c));
}

void UpstreamConnection::body_arrived(Course& c) {
  const std::string_view piece = reader_.piece();
  referee_.upstream_got_body(c, body_bytes_, piece);
  body_bytes_ += piece.size();
  if (c.script.answer == Answer::die_before_head && body_bytes_ > c.script.request_bytes / 2) die();
}

void UpstreamConnection::request_over(Course& c) {
  request_whole_ = true;
  referee_.upstream_got_all(c, body_bytes_);
  if (!answering_) answer(c);
  if (answer_out_) answer_sent();
}

void UpstreamConnection::answer(Course& c) {
  const Script& s = c.script;
  if (too_early_) return refuse(c);
  if (s.answer == Answer::never) return;
  if (s.answer == Answer::die_before_head) return die();
  answering_ = true;
  send(s.interim_heads());
  c.upstream_sent_head = true;
  if (s.answer == Answer::switch_protocols) return switch_protocols(c);
  send(s.response_head());
  send(s.response_body());
  after_ = After::next;
  // An answer to HEAD does not show that its end is the connection's.
  if (s.answer == Answer::until_close && s.ask == Ask::head) referee_.idle_closed();
  if (s.answer == Answer::until_close || s.answer == Answer::malformed || s.server_close) {
    after_ = After::end;
  }
  if (s.answer == Answer::die_in_body) after_ = After::die;
  wake_after(0);
}

// RFC 8470 §5.2.
void UpstreamConnection::refuse(Course& c) {
  ++c.upstream_too_early;
  answering_ = true;
  c.upstream_sent_head = true;
  after_ = After::next;
  send("HTTP/1.1 425 Too Early\r\nX-Sim-Id: " + std::to_string(c.script.id) +
       "\r\nContent-Length: 0\r\n\r\n");
  wake_after(0);
}

void UpstreamConnection::switch_protocols(Course& c) {
  tunnel_ = true;
  ending_ = true;
  send(c.script.response_head());
  send(marked(c.script.id, Lane::tunnel_down, 0, c.script.tunnel_down_bytes));
  finish();
}

void UpstreamConnection::tunnel_data(std::string_view data) {
  Course& c = *course_;
  const std::size_t at = c.upstream_tunnel_bytes;
  if (first_wrong(c.script.id, Lane::tunnel_up, at, data) != std::string_view::npos) {
    referee_.fail("a wrong byte in a tunnel, upwards: " + to_string(c));
  }
  c.upstream_tunnel_bytes += data.size();
}

void UpstreamConnection::on_sent() {
  moved();
  if (tunnel_ && peer_ended_ && drained()) return close();
  if (!answering_ || answer_out_ || tunnel_ || !drained()) return;
  answer_out_ = true;
  if (after_ == After::die) {
    // Behind what was sent, mostly.
    core_.clock.after(core_.random.between(0, 2 * millisecond_ns), [this] { die(); });
    return;
  }
  if (after_ == After::end) {
    ending_ = true;
    finish();
    close_later();
    return;
  }
  answer_sent();
}

// Answer and request are both through: the next may come.
void UpstreamConnection::answer_sent() {
  if (!request_whole_ || !answer_out_ || after_ != After::next) return;
  const bool close_soon = course_->script.close_when_idle;
  course_ = nullptr;
  head_seen_ = request_whole_ = answering_ = answer_out_ = false;
  body_bytes_ = 0;
  ++served_;
  reader_.begin();
  if (close_soon) idle();
}

void UpstreamConnection::idle() {
  core_.clock.after(core_.random.between(0, 30 * millisecond_ns), [this, served = served_] {
    if (closed() || served_ != served || reader_.started()) return;
    referee_.idle_closed();
    close();
  });
}

void UpstreamConnection::die() {
  if (closed()) return;
  // A clean end would make a response that lasts until the end look whole.
  if (course_ != nullptr && course_->script.reset_when_dying) return reset();
  close();
}

// A server lingers, so that the end of its answer is not lost to a reset.
void UpstreamConnection::close_later() {
  core_.clock.after(3 * second_ns, [this] { close(); });
}

void UpstreamConnection::on_end() {
  // A tunnel may still have something to send; for anything else it is the end.
  peer_ended_ = true;
  if (!tunnel_ || drained()) close();
}

void UpstreamConnection::on_error(int error) {
  if (error == EPROTO) referee_.fail("an upstream got what is no record");
  close();
}

UpstreamServer::UpstreamServer(Core& core, Referee& referee, const net::Address& address,
                               bool secure, bool h2)
    : core_(core), referee_(referee), secure_(secure), h2_(h2) {
  net::Address bound = address;
  core_.network.bind(bound, {});
  listener_ = core_.network.listen(bound, 1024);
  listener_->set_waker(this);
}

UpstreamServer::~UpstreamServer() {
  listener_->set_waker(nullptr);
  core_.network.stop(listener_);
}

void UpstreamServer::on_ready() {
  while (auto stream = listener_->accept()) {
    if (h2_)
      connections_.push_back(
          std::make_unique<H2UpstreamConnection>(core_, referee_, std::move(stream), secure_));
    else
      connections_.push_back(
          std::make_unique<UpstreamConnection>(core_, referee_, std::move(stream), secure_));
  }
}

std::size_t UpstreamServer::open_connections() const {
  return static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(),
                                                [](const auto& c) { return !c->closed(); }));
}

}  // namespace ringside::sim
