#include "h2_client_peer.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "h2_script.h"
#include "marks.h"

namespace ringside::sim {

namespace {

constexpr std::uint64_t continue_wait_ns = second_ns;
// One head of so long a time ends them all.
constexpr std::uint64_t slow_ns = 9 * second_ns;
// What is framed waits here: less, and a reset would not overtake a body.
constexpr std::uint64_t framed_bytes_max = 20'000;
// A window that is a part of the body takes so many turns.
constexpr std::size_t turns_of_windows = 40;

// Instead of one of its streams it cuts the connection.
bool cuts_connection(const Script& script) {
  return script.aborts() && script.malformed_kind % 2 == 0;
}

}  // namespace

H2ClientPeer::H2ClientPeer(Core& core, Referee& referee, const net::Address& to,
                           std::vector<std::uint32_t> ids, Over over, bool secure)
    : DiallingPeer(core, referee, to, std::move(over), secure) {
  for (std::uint32_t id : ids)
    exchanges_.push_back({.script = id, .body = {}});
  draw_manners();
}

void H2ClientPeer::draw_manners() {
  Random& random = core_.random;
  for (const Exchange& exchange : exchanges_)
    largest_ = std::max(largest_, script(exchange).response_bytes);
  const auto part = static_cast<std::uint32_t>(1 + largest_ / turns_of_windows);
  const std::uint32_t windows[] = {part, 0, 20'000, 65'535, 65'535, 1U << 20};
  windows_.stream_window_bytes = random.pick(windows);
  windows_.connection_window_bytes = random.one_in(3) ? 1U << 22 : 65'535;
  windows_.padding = random.one_in(4);
  if (random.one_in(4)) windows_.table_bytes = random.coin() ? 0 : 100;
  if (random.one_in(4)) late_ns_ = random.between(1, 100) * millisecond_ns;
  at_a_time_ = random.between(1, 10);
  static constexpr Farewell farewells[] = {Farewell::leave, Farewell::leave, Farewell::half_close,
                                           Farewell::go_away, Farewell::idle};
  farewell_ = random.pick(farewells);
  if (random.one_in(3)) piece_bytes_max_ = 60;
  end_alone_ = random.one_in(3);
  if (random.one_in(12)) err_at_ = random.between(1, exchanges_.size());
  // Who has ended its side lets no window grow any more.
  if (farewell_ == Farewell::half_close) {
    windows_.stream_window_bytes = 1U << 20;
    windows_.connection_window_bytes = 1U << 24;
  }
}

void H2ClientPeer::connected(std::shared_ptr<Stream> stream) {
  late_before_ = late_completions();
  attach(std::move(stream),
         secure_ ? std::make_unique<TlsPeer>(core_, TlsEnd::Role::client, true) : nullptr);
  H2SessionListener& self = *this;
  session_ = std::make_unique<H2Session>(self, windows_, core_.random.fork());
  ask_more();
}

std::uint64_t H2ClientPeer::upstream_active_ns() {
  std::uint64_t out = 0;
  for (const Exchange& exchange : exchanges_)
    out = std::max(out, course(exchange).active_ns);
  return out;
}

const Course* H2ClientPeer::waits_for() {
  const auto open = std::ranges::find_if(
      exchanges_, [](const Exchange& e) { return e.begin != never_sent && !e.over; });
  return open == exchanges_.end() ? nullptr : &course(*open);
}

void H2ClientPeer::note(std::string_view what) {
  referee_.note(course(exchanges_.front()), what);
}

H2ClientPeer::Exchange* H2ClientPeer::find(std::int32_t stream) {
  const auto at = std::ranges::find(exchanges_, stream, &Exchange::stream);
  return at == exchanges_.end() ? nullptr : &*at;
}

// ---- sending

void H2ClientPeer::pump() {
  if (!going() || finished_) return;
  bool more = false;
  while (bytes_queued() - bytes_sent() < framed_bytes_max) {
    const std::string_view bytes = session_->next();
    if (bytes.empty()) break;
    send(bytes);
    more = true;
  }
  if (more) wake_after(0);
}

void H2ClientPeer::ask_more() {
  while (asked_ < exchanges_.size() && open_ < at_a_time_ && !server_leaves_ && !erred_) {
    ask(exchanges_[asked_++]);
    if (asked_ == err_at_) err();
  }
  pump();
}

void H2ClientPeer::ask(Exchange& exchange) {
  const Script& s = script(exchange);
  const bool bodied = s.has_request_body();
  exchange.body = marked(s.id, Lane::request, 0, bodied ? s.request_bytes : 0);
  exchange.holding = s.expect;
  exchange.stream = session_->request(h2_request(s), bodied);
  ++open_;
  if (s.expect) {
    core_.clock.after(continue_wait_ns, [this, stream = exchange.stream] { let_body_go(stream); });
  }
  if (core_.random.one_in(6)) session_->ping();
  if (s.conduct == Conduct::slow_reader && late_ns_ == 0) {
    // All streams wait for it: less long than the least rate lets a body wait.
    const std::size_t bytes = 1 + s.response_bytes / turns_of_windows;
    set_pace(
        {.bytes = bytes, .pause_ns = core_.random.between(1, 150) * millisecond_ns, .steps = 40});
  }
  if (s.conduct == Conduct::abort_sending && !cuts_connection(s)) plan_abort(exchange);
}

// Sooner or later than its body comes to the place where it is to be given up.
void H2ClientPeer::plan_abort(Exchange& exchange) {
  core_.clock.after(core_.random.between(0, 30 * millisecond_ns), [this, stream = exchange.stream] {
    Exchange* found = find(stream);
    if (!going() || found == nullptr) return;
    take_back(*found);
    pump();
  });
}

void H2ClientPeer::take_back(Exchange& exchange) {
  if (finished_ || exchange.over || exchange.begin == never_sent) return;
  if (std::exchange(exchange.taken_back, true)) return;
  course(exchange).client_left = true;
  session_->reset(exchange.stream, NGHTTP2_CANCEL);
}

void H2ClientPeer::let_body_go(std::int32_t stream) {
  Exchange* exchange = find(stream);
  // The final answer came first: the body is not sent.
  if (!going() || exchange == nullptr || exchange->over || exchange->head_seen) return;
  if (!std::exchange(exchange->holding, false)) return;
  session_->resume(stream);
  pump();
}

void H2ClientPeer::on_request_leaves(std::int32_t stream) {
  Exchange& exchange = *find(stream);
  exchange.begin = bytes_queued();
  exchange.unlimited = !session_->settings_seen();
  const Script& s = script(exchange);
  if (s.conduct != Conduct::abort_sending || !cuts_connection(s)) return;
  cut_at_ = std::min(cut_at_, exchange.begin + s.abort_after);
  cut_by_reset_ = s.abort_with_reset;
  stop_sending_at(cut_at_);
}

void H2ClientPeer::on_request_unsent(std::int32_t stream) {
  Exchange& exchange = *find(stream);
  if (exchange.stream == 0) return;
  exchange.stream = -1;  // as if it had not been asked for
  --open_;
}

void H2ClientPeer::on_message_whole(std::int32_t stream) {
  if (Exchange* exchange = find(stream); exchange != nullptr) exchange->end = bytes_queued();
}

H2SessionListener::Piece H2ClientPeer::on_body_wanted(std::int32_t stream, std::span<char> room) {
  Exchange& exchange = *find(stream);
  const Script& s = script(exchange);
  const std::size_t most = s.stalls ? exchange.body.size() / 2 : exchange.body.size();
  const std::size_t left = most - exchange.body_at;
  if (exchange.holding || (s.stalls && left == 0)) return {.wait = true};
  const std::size_t bytes =
      std::min<std::size_t>({room.size(), left, core_.random.between(1, piece_bytes_max_)});
  std::copy_n(exchange.body.data() + exchange.body_at, bytes, room.data());
  exchange.body_at += bytes;
  const bool all = exchange.body_at == exchange.body.size();
  return {.bytes = bytes, .last = all && (bytes == 0 || !end_alone_)};
}

H2FieldList H2ClientPeer::trailers_of(std::int32_t stream) {
  const Script& s = script(*find(stream));
  if (s.ask != Ask::post_chunked || !s.trailers) return {};
  return {{"x-sim-trailer", "end"}};
}

// Ringside may still wait for the handshake, or for the preface: their time counts with them.
void H2ClientPeer::begun(Exchange& exchange) {
  Course& c = course(exchange);
  if (c.begun) return;
  referee_.begun(c, harm_before_);
  c.secure = secure_;
  c.client_left |= erred_;
  if (!session_->greeted()) c.begun_ns = dialled_ns_;
}

void H2ClientPeer::on_sent() {
  active();
  pump();
  bool whole = asked_ == exchanges_.size();
  for (Exchange& exchange : exchanges_) {
    if (bytes_sent() > exchange.begin) begun(exchange);
    if (bytes_sent() >= exchange.end) course(exchange).sent_whole = true;
    whole &= exchange.over || bytes_sent() >= exchange.end;
  }
  if (bytes_sent() >= cut_at_) return leave(cut_by_reset_);
  // All that it has to say was said.
  const bool quiet = bytes_queued() == bytes_sent() && session_->settings_seen();
  if (farewell_ == Farewell::half_close && whole && quiet) half_close();
}

// What it has asked for is not owed any more.
void H2ClientPeer::leave_to_itself() {
  for (Exchange& exchange : exchanges_) {
    if (!exchange.over) course(exchange).client_left = true;
  }
}

// What no client may do.
void H2ClientPeer::err() {
  pump();
  erred_ = must_close_ = true;
  leave_to_itself();
  session_->expect_others();
  send(h2_mistake(static_cast<unsigned>(core_.random.next())));
  note("its client errs");
}

// ---- receiving

void H2ClientPeer::on_data(std::string_view data) {
  active();
  session_->receive(data);
  if (referee_.failed()) return leave(true);
  if (leaving_) return leave(cut_by_reset_);
  pump();
}

void H2ClientPeer::on_stream_head(std::int32_t stream, const H2FieldList& fields) {
  Exchange& exchange = *find(stream);
  const std::string_view status = value_of(fields, ":status");
  if (status.empty()) {
    ++course(exchange).trailers;
    if (!exchange.head_seen) on_violation("trailers without a head");
    return;
  }
  const int code = std::atoi(std::string(status).c_str());
  if (exchange.head_seen) on_violation("a head behind the final one");
  if (code == 103) ++course(exchange).interims;
  if (code == 100) {
    exchange.holding = false;
    session_->resume(stream);
  }
  if (code >= 200) final_head(exchange, code, fields);
}

void H2ClientPeer::final_head(Exchange& exchange, int status, const H2FieldList& fields) {
  exchange.head_seen = true;
  referee_.got_head(course(exchange), status, value_of(fields, "x-sim-id"));
  for (const char* name : {"connection", "keep-alive", "transfer-encoding", "upgrade"}) {
    if (!value_of(fields, name).empty()) on_violation("a field of HTTP/1.1 came through");
  }
  if (windows_.stream_window_bytes != 0) return;
  // No window was given at first.
  core_.clock.after(late_ns_, [this, stream = exchange.stream] {
    const Exchange* asking = find(stream);
    if (!going() || asking->over) return;
    const std::size_t bytes = std::max<std::size_t>(largest_ / turns_of_windows, 1'000);
    session_->set_stream_window(stream, static_cast<std::uint32_t>(bytes));
    pump();
  });
}

void H2ClientPeer::on_stream_body(std::int32_t stream, std::string_view bytes) {
  Exchange& exchange = *find(stream);
  if (!exchange.over) referee_.got_body(course(exchange), bytes);
  exchange.received += bytes.size();
  use(stream, bytes.size());
  const Script& s = script(exchange);
  if (s.conduct != Conduct::abort_reading || exchange.over) return;
  if (exchange.received <= s.abort_after) return;
  cut_by_reset_ = s.abort_with_reset;
  if (cuts_connection(s))
    leaving_ = true;
  else
    take_back(exchange);
}

void H2ClientPeer::use(std::int32_t stream, std::size_t bytes) {
  if (late_ns_ == 0) return session_->consume(stream, bytes);
  core_.clock.after(late_ns_, [this, stream, bytes] {
    if (!going()) return;
    session_->consume(stream, bytes);
    pump();
  });
}

void H2ClientPeer::on_stream_end(std::int32_t stream) {
  find(stream)->end_seen = true;
}

std::uint64_t H2ClientPeer::late_completions() const {
  return core_.faults.counts()[static_cast<std::size_t>(Fault::late_completion)];
}

// What the server says of streams of clients that did all right. A stream is kept until it is known
// that its last bytes have left, and no more are kept than twice as many as are announced.
void H2ClientPeer::note_code(Exchange& exchange, std::uint32_t code) {
  Course& c = course(exchange);
  c.reset_code = code;
  if (exchange.taken_back) return;
  if (code == NGHTTP2_REFUSED_STREAM) {
    c.refused = !exchange.end_seen;
    if (erred_) return;
    if (!server_leaves_ && !exchange.unlimited && core_.faults.harm() == harm_before_ &&
        late_completions() == late_before_ && !referee_.relaxed())
      on_violation("a request was refused without a cause");
    return;
  }
  if (erred_ || c.script.ask == Ask::malformed) return;
  const bool blames =
      code != NGHTTP2_NO_ERROR && code != NGHTTP2_CANCEL && code != NGHTTP2_INTERNAL_ERROR;
  if (blames) on_violation("a good client's stream was reset with code " + std::to_string(code));
}

void H2ClientPeer::on_stream_closed(std::int32_t stream, std::uint32_t code) {
  Exchange* exchange = find(stream);
  if (exchange == nullptr || exchange->over || exchange->begin == never_sent) return;
  begun(*exchange);
  note_code(*exchange, code);
  exchange_over(*exchange, exchange->end_seen && !exchange->taken_back);
}

void H2ClientPeer::on_go_away(std::uint32_t code) {
  server_leaves_ = true;
  note("the server goes away, " + std::to_string(code));
  const bool slow =
      code == NGHTTP2_ENHANCE_YOUR_CALM && core_.clock.now_ns() - dialled_ns_ >= slow_ns;
  if (slow) leave_to_itself();
  const bool blames = code != NGHTTP2_NO_ERROR && code != NGHTTP2_INTERNAL_ERROR && !slow;
  if (blames && !erred_)
    on_violation("a good client's connection was ended with code " + std::to_string(code));
}

void H2ClientPeer::on_violation(const std::string& what) {
  std::string text = "HTTP/2: " + what + ":";
  for (const Exchange& exchange : exchanges_) {
    if (exchange.begin != never_sent) text += "\n  " + to_string(course(exchange));
  }
  referee_.fail(text);
}

// ---- the end

void H2ClientPeer::exchange_over(Exchange& exchange, bool complete) {
  Course& c = course(exchange);
  exchange.over = true;
  c.complete = complete;
  referee_.ended(c);
  --open_;
  core_.clock.after(core_.random.between(0, 10 * millisecond_ns), [this] {
    if (!going()) return;
    if (core_.random.one_in(8) && farewell_ != Farewell::half_close) change_windows();
    ask_more();
    all_over();
  });
}

// Of streams that are open, too: what may come of them can become less than nothing.
void H2ClientPeer::change_windows() {
  const auto part = static_cast<std::uint32_t>(1'000 + largest_ / turns_of_windows);
  session_->change_initial_window(core_.random.coin() ? 65'535 : part);
}

void H2ClientPeer::all_over() {
  if (open_ != 0 || must_close_) return;
  if (asked_ != exchanges_.size() && !server_leaves_) return;
  must_close_ = true;
  say_farewell();
}

void H2ClientPeer::half_close() {
  if (std::exchange(finished_, true)) return;
  note("its client ends its side");
  finish();
}

void H2ClientPeer::say_farewell() {
  if (farewell_ == Farewell::leave) {
    close();
    return report();
  }
  if (farewell_ == Farewell::half_close) half_close();
  if (farewell_ == Farewell::go_away) session_->go_away(NGHTTP2_NO_ERROR);
  pump();
}

// Goes away, whatever is going on.
void H2ClientPeer::leave(bool by_reset) {
  if (reported()) return;
  leave_to_itself();
  if (by_reset)
    reset();
  else
    close();
  connection_over();
}

void H2ClientPeer::on_end() {
  note("the server has ended its connection");
  connection_over();
}

void H2ClientPeer::on_error(int error) {
  note("its connection failed");
  // As in on_go_away(), where the GOAWAY was lost.
  const bool slow = std::ranges::any_of(exchanges_, [this](const Exchange& exchange) {
    const Course& c = course(exchange);
    return c.begun && !exchange.over && core_.clock.now_ns() - c.begun_ns >= slow_ns;
  });
  if (slow) leave_to_itself();
  if (error == EPROTO) referee_.fail("a client got what is no record");
  connection_over();
}

void H2ClientPeer::connection_over() {
  if (reported()) return;
  for (Exchange& exchange : exchanges_) {
    if (!exchange.over && course(exchange).begun) {
      exchange.over = true;
      course(exchange).complete = exchange.end_seen && !exchange.taken_back;
      referee_.ended(course(exchange));
    }
  }
  close();
  report();
}

std::vector<std::uint32_t> H2ClientPeer::rest() const {
  std::vector<std::uint32_t> out;
  for (const Exchange& exchange : exchanges_) {
    if (!exchange.over) out.push_back(exchange.script);
  }
  return out;
}

}  // namespace ringside::sim
