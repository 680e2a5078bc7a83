#include "h2_upstream_peer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "h2_script.h"
#include "marks.h"

namespace ringside::sim {

namespace {

// What is framed waits here: less, and a reset would not overtake a body.
constexpr std::uint64_t framed_bytes_max = 20'000;
// A slow network has brought it all by then.
constexpr std::uint64_t linger_ns = 60 * second_ns;
// With a window of nothing at first.
constexpr std::uint32_t opened_bytes = 2'000;

bool bodied(const Script& s) {
  return s.ask != Ask::head && s.answer != Answer::no_content && s.answer != Answer::not_modified;
}

}  // namespace

H2UpstreamConnection::H2UpstreamConnection(Core& core, Referee& referee,
                                           std::shared_ptr<Stream> stream, bool secure)
    : PeerConnection(core), referee_(referee), secure_(secure) {
  const H2Session::Options options = draw_manners();
  draw_misdeeds();
  H2SessionListener& self = *this;
  session_ = std::make_unique<H2Session>(self, options, core.random.fork());
  attach(std::move(stream),
         secure ? std::make_unique<TlsPeer>(core, TlsEnd::Role::server, true) : nullptr);
  if (core.faults.hit(Fault::h2_no_settings)) return;
  const std::uint64_t most_ns = core.faults.hit(Fault::h2_late_settings) ? 2 * second_ns : 0;
  after(most_ns, [this] { mute_ = false; });
}

H2Session::Options H2UpstreamConnection::draw_manners() {
  Faults& faults = core_.faults;
  Random& random = core_.random;
  H2Session::Options out{.role = H2Session::Role::server};
  static constexpr std::uint32_t streams[] = {0, 100, 250};
  out.streams_max = random.pick(streams);
  if (faults.hit(Fault::h2_few_streams))
    out.streams_max = static_cast<std::uint32_t>(random.between(1, 3));
  static constexpr std::uint32_t windows[] = {65'535, 1U << 20};
  static constexpr std::uint32_t small_windows[] = {0, 500, 20'000};
  out.stream_window_bytes = random.pick(windows);
  if (faults.hit(Fault::h2_small_windows)) out.stream_window_bytes = random.pick(small_windows);
  no_window_ = out.stream_window_bytes == 0;
  out.connection_window_bytes = random.one_in(3) ? 1U << 22 : 65'535;
  out.padding = faults.hit(Fault::h2_padding);
  if (random.one_in(4)) out.table_bytes = random.coin() ? 0 : 100;
  if (faults.hit(Fault::h2_late_windows)) late_ns_ = random.between(1, 100) * millisecond_ns;
  pauses_ = faults.hit(Fault::h2_pauses);
  if (random.one_in(3)) piece_bytes_max_ = 60;
  return out;
}

// They are counted when they happen.
void H2UpstreamConnection::draw_misdeeds() {
  const auto draw = [this](Fault fault) {
    return core_.faults.plan(fault) ? static_cast<unsigned>(core_.random.between(1, 5)) : 0U;
  };
  go_away_at_ = draw(Fault::h2_go_away);
  go_away_error_at_ = draw(Fault::h2_go_away_error);
  err_at_ = draw(Fault::h2_mistake);
  lower_at_ = draw(Fault::h2_streams_lowered);
  change_windows_at_ = draw(Fault::h2_windows_changed);
  if (!core_.faults.plan(Fault::h2_cut)) return;
  cut_at_ = core_.random.below(core_.random.coin() ? 200 : 5'000);
  stop_sending_at(cut_at_);
}

H2UpstreamConnection::Exchange* H2UpstreamConnection::find(std::int32_t stream) {
  const auto at = exchanges_.find(stream);
  return at == exchanges_.end() ? nullptr : &at->second;
}

void H2UpstreamConnection::note(const std::string& what) {
  if (last_ != nullptr) referee_.note(*last_, "its server " + what);
}

void H2UpstreamConnection::moved() {
  referee_.progress();
  for (const auto& [stream, exchange] : exchanges_)
    exchange.course->active_ns = core_.clock.now_ns();
}

void H2UpstreamConnection::pump() {
  if (closed() || finished_ || mute_) return;
  bool more = false;
  while (bytes_queued() - bytes_sent() < framed_bytes_max) {
    const std::string_view bytes = session_->next();
    if (bytes.empty()) break;
    send(bytes);
    more = true;
  }
  if (more) wake_after(0);
}

void H2UpstreamConnection::after(std::uint64_t most_ns, std::function<void()> what) {
  const std::uint64_t delay_ns = core_.random.coin() ? 0 : core_.random.between(0, most_ns);
  core_.clock.after(delay_ns, [this, what = std::move(what)] {
    if (closed()) return;
    what();
    pump();
    end_if_over();
  });
}

// ---- requests

void H2UpstreamConnection::on_data(std::string_view data) {
  moved();
  if (finished_) return;
  session_->receive(data);
  if (referee_.failed()) return reset();
  pump();
}

void H2UpstreamConnection::on_stream_head(std::int32_t stream, const H2FieldList& fields) {
  Exchange* exchange = find(stream);
  if (exchange == nullptr) return request_began(stream, fields);
  const Script& s = exchange->course->script;
  exchange->trailers = true;
  const bool scripted = s.ask == Ask::post_chunked && s.trailers;
  if (!scripted || value_of(fields, "x-sim-trailer") != "end") on_violation("wrong trailers");
}

void H2UpstreamConnection::request_began(std::int32_t stream, const H2FieldList& fields) {
  Course* course = referee_.upstream_got_head(value_of(fields, ":path"));
  if (course == nullptr) return;
  course->upstream_h2 = true;
  referee_.judge_early(*course, value_of(fields, "early-data") == "1");
  Exchange& exchange = exchanges_[stream];
  exchange.course = course;
  exchange.scripted = leaving_;  // GOAWAY is on its way
  highest_ = std::max(highest_, stream);
  last_ = course;
  ++asked_;
  check_head(*course, fields);
  if (no_window_) {
    after(late_ns_, [this, stream] {
      if (find(stream) != nullptr) session_->set_stream_window(stream, opened_bytes);
    });
  }
  plan_fate(stream);
  plan_events();
  const Script& s = course->script;
  if (s.expect && !exchange.scripted && s.answer != Answer::never && !s.early_answer) {
    exchange.begun = true;
    kept_ = std::max(kept_, stream);
    session_->interim(stream, h2_interim(100));
  }
  if (s.early_answer) plan_answer(stream);
}

void H2UpstreamConnection::check_head(const Course& c, const H2FieldList& fields) {
  const Script& s = c.script;
  const auto is = [&fields](const char* name, std::string_view wanted) {
    return value_of(fields, name) == wanted;
  };
  const std::string text = ": " + to_string(c);
  const char* method = s.has_request_body() ? "POST" : s.ask == Ask::head ? "HEAD" : "GET";
  if (!is(":method", method) || !is(":path", s.target()))
    referee_.fail("the request line was changed" + text);
  if (!is(":authority", "sim.test")) referee_.fail("a wrong authority" + text);
  if (!is(":scheme", secure_ ? "https" : "http")) referee_.fail("a wrong scheme" + text);
  if (is("via", "")) referee_.fail("no Via" + text);
  if (!is("te", "") && !is("te", "trailers")) referee_.fail("a wrong TE" + text);
  for (const char* name : {"connection", "keep-alive", "transfer-encoding", "upgrade", "host"}) {
    if (!is(name, "")) referee_.fail("a field of HTTP/1.1 came through" + text);
  }
  // Of nothing whose end is to come still the length is not told.
  const bool told = s.ask == Ask::post_length;
  const bool untold = !told || s.request_bytes == 0;
  const bool exact = told && is("content-length", std::to_string(s.request_bytes));
  if (!exact && !(untold && is("content-length", "")))
    referee_.fail("the framing was changed" + text);
}

// Of this request.
void H2UpstreamConnection::plan_fate(std::int32_t stream) {
  if (core_.faults.plan(Fault::h2_refused))
    after(5 * millisecond_ns, [this, stream] { refuse(stream); });
  if (core_.faults.plan(Fault::h2_reset)) {
    after(30 * millisecond_ns, [this, stream] {
      if (find(stream) == nullptr) return;
      core_.faults.note(Fault::h2_reset);
      give_up(stream);
    });
  }
}

// Of the connection.
void H2UpstreamConnection::plan_events() {
  constexpr std::uint64_t soon_ns = 5 * millisecond_ns;
  if (core_.faults.hit(Fault::h2_ping)) session_->ping();
  if (asked_ == go_away_at_) {
    after(soon_ns, [this] { go_away(NGHTTP2_NO_ERROR); });
    if (core_.random.coin()) session_->notice_go_away();
  }
  if (asked_ == go_away_error_at_) after(soon_ns, [this] { go_away_with_error(); });
  if (asked_ == err_at_) after(soon_ns, [this] { err(); });
  if (asked_ == lower_at_) {
    core_.faults.note(Fault::h2_streams_lowered);
    session_->change_streams_max(static_cast<std::uint32_t>(core_.random.between(1, 2)));
  }
  if (asked_ == change_windows_at_) {
    core_.faults.note(Fault::h2_windows_changed);
    static constexpr std::uint32_t windows[] = {1'000, 65'535, 1U << 18};
    session_->change_initial_window(core_.random.pick(windows));
  }
}

void H2UpstreamConnection::on_stream_body(std::int32_t stream, std::string_view bytes) {
  use(stream, bytes.size());
  Exchange* exchange = find(stream);
  if (exchange == nullptr) return;
  Course& c = *exchange->course;
  referee_.upstream_got_body(c, exchange->request_bytes, bytes);
  exchange->request_bytes += bytes.size();
  if (c.script.answer == Answer::die_before_head &&
      exchange->request_bytes > c.script.request_bytes / 2)
    give_up_in_script(stream);
}

void H2UpstreamConnection::use(std::int32_t stream, std::size_t bytes) {
  if (late_ns_ == 0) return session_->consume(stream, bytes);
  core_.clock.after(late_ns_, [this, stream, bytes] {
    if (closed()) return;
    session_->consume(stream, bytes);
    pump();
  });
}

void H2UpstreamConnection::on_stream_end(std::int32_t stream) {
  Exchange* exchange = find(stream);
  if (exchange == nullptr) return;
  exchange->request_whole = true;
  Course& c = *exchange->course;
  referee_.upstream_got_all(c, exchange->request_bytes);
  const Script& s = c.script;
  // On another try they are gone with the buffer that they came in.
  const bool owed = s.ask == Ask::post_chunked && s.trailers && referee_.one_try();
  if (owed && !exchange->trailers) on_violation("trailers were lost");
  if (!s.early_answer) plan_answer(stream);
}

// ---- answers

void H2UpstreamConnection::plan_answer(std::int32_t stream) {
  after(3 * millisecond_ns, [this, stream] {
    if (find(stream) != nullptr) answer(stream);
  });
}

void H2UpstreamConnection::answer(std::int32_t stream) {
  Exchange& exchange = *find(stream);
  Course& c = *exchange.course;
  const Script& s = c.script;
  if (exchange.scripted || s.answer == Answer::never) return;
  if (s.answer == Answer::die_before_head) return give_up_in_script(stream);
  exchange.begun = true;
  kept_ = std::max(kept_, stream);
  for (unsigned i = 0; i < s.interims; ++i)
    session_->interim(stream, h2_interim(103));
  c.upstream_sent_head = true;
  if (s.answer == Answer::malformed) {
    pump();
    exchange.scripted = true;
    send(h2_malformed_answer(s.malformed_kind, stream));
    return wake_after(0);
  }
  const bool dies = s.answer == Answer::die_in_body;
  exchange.body = marked(s.id, Lane::response, 0, dies ? s.die_after : s.response_bytes);
  session_->respond(stream, h2_response(s), bodied(s));
}

H2SessionListener::Piece H2UpstreamConnection::on_body_wanted(std::int32_t stream,
                                                              std::span<char> room) {
  Exchange& exchange = *find(stream);
  const Script& s = exchange.course->script;
  const std::size_t left = exchange.body.size() - exchange.body_at;
  const bool dies = s.answer == Answer::die_in_body && s.reset_when_dying;
  if (dies && left == 0) {
    after(2 * millisecond_ns, [this, stream] { give_up_in_script(stream); });
    return {.wait = true};
  }
  if (pauses_ && core_.random.one_in(4)) {
    after(3 * millisecond_ns, [this, stream] {
      if (find(stream) != nullptr) session_->resume(stream);
    });
    return {.wait = true};
  }
  const std::size_t bytes =
      std::min<std::size_t>({room.size(), left, core_.random.between(1, piece_bytes_max_)});
  std::copy_n(exchange.body.data() + exchange.body_at, bytes, room.data());
  exchange.body_at += bytes;
  return {.bytes = bytes, .last = bytes == left && !dies};
}

H2FieldList H2UpstreamConnection::trailers_of(std::int32_t stream) {
  const Script& s = find(stream)->course->script;
  if (s.answer != Answer::chunked || !s.trailers) return {};
  return {{"x-sim-trailer", "end"}};
}

void H2UpstreamConnection::on_message_whole(std::int32_t stream) {
  Exchange& exchange = *find(stream);
  exchange.answered = true;
  if (exchange.course->script.server_close) after(0, [this] { go_away(NGHTTP2_NO_ERROR); });
  if (exchange.request_whole || !core_.faults.hit(Fault::h2_rest_unwanted)) return;
  // RFC 9113 §8.1.
  after(millisecond_ns, [this, stream] {
    Exchange* found = find(stream);
    if (found == nullptr) return;
    found->scripted = true;
    session_->reset(stream, NGHTTP2_NO_ERROR);
  });
}

void H2UpstreamConnection::on_sent() {
  moved();
  pump();
  if (bytes_sent() < cut_at_) return;
  core_.faults.note(Fault::h2_cut);
  note("cuts its connection");
  if (core_.random.coin()) return reset();
  close();
}

// ---- misdeeds

void H2UpstreamConnection::refuse(std::int32_t stream) {
  Exchange* exchange = find(stream);
  if (exchange == nullptr || exchange->begun || exchange->scripted) return;
  core_.faults.note(Fault::h2_refused);
  exchange->scripted = true;
  session_->reset(stream, NGHTTP2_REFUSED_STREAM);
}

void H2UpstreamConnection::give_up(std::int32_t stream) {
  Exchange& exchange = *find(stream);
  if (std::exchange(exchange.scripted, true)) return;
  exchange.begun = true;
  kept_ = std::max(kept_, stream);
  static constexpr std::uint32_t codes[] = {
      NGHTTP2_NO_ERROR,       NGHTTP2_INTERNAL_ERROR,    NGHTTP2_INTERNAL_ERROR,    NGHTTP2_CANCEL,
      NGHTTP2_PROTOCOL_ERROR, NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_HTTP_1_1_REQUIRED, 0x1234};
  session_->reset(stream, core_.random.pick(codes));
}

void H2UpstreamConnection::give_up_in_script(std::int32_t stream) {
  if (find(stream) != nullptr) give_up(stream);
}

// Some of the requests that it has not begun to serve are handed back.
void H2UpstreamConnection::go_away(std::uint32_t code) {
  if (std::exchange(leaving_, true)) return;
  if (code == NGHTTP2_NO_ERROR) core_.faults.note(Fault::h2_go_away);
  std::int32_t last = highest_;
  for (const auto& [stream, exchange] : exchanges_) {
    if (stream < kept_ || !core_.random.coin()) continue;
    last = stream;
    break;
  }
  for (auto& [stream, exchange] : exchanges_)
    exchange.scripted |= stream > last;
  session_->go_away(code, last);
  referee_.handed_back(nullptr);
  note("goes away, " + std::to_string(last));
}

void H2UpstreamConnection::go_away_with_error() {
  if (leaving_) return;
  core_.faults.note(Fault::h2_go_away_error);
  go_away(core_.random.coin() ? NGHTTP2_INTERNAL_ERROR : NGHTTP2_ENHANCE_YOUR_CALM);
  pump();
  core_.clock.after(core_.random.between(0, 5 * millisecond_ns), [this] { close(); });
}

// What no server may do.
void H2UpstreamConnection::err() {
  core_.faults.note(Fault::h2_mistake);
  erred_ = true;
  note("errs");
  pump();
  send(h2_mistake(static_cast<unsigned>(core_.random.next())));
  wake_after(0);
}

// ---- the end

void H2UpstreamConnection::on_stream_closed(std::int32_t stream, std::uint32_t code) {
  const auto at = exchanges_.find(stream);
  if (at == exchanges_.end()) return;
  const Exchange exchange = std::move(at->second);
  exchanges_.erase(at);
  const Script& s = exchange.course->script;
  if (code == NGHTTP2_REFUSED_STREAM && !exchange.begun) {
    referee_.handed_back(exchange.course);
  } else if (!exchange.scripted && s.answer != Answer::die_in_body && code != NGHTTP2_NO_ERROR &&
             code != NGHTTP2_CANCEL) {
    on_violation("a good server's stream was reset with code " + std::to_string(code));
  }
  const bool idle = exchanges_.empty() && s.close_when_idle && !leaving_;
  if (idle) close_when_idle();
  if (leaving_) after(0, [] {});
}

void H2UpstreamConnection::close_when_idle() {
  core_.clock.after(core_.random.between(0, 30 * millisecond_ns), [this, asked = asked_] {
    if (closed() || finished_ || asked_ != asked || !exchanges_.empty()) return;
    referee_.idle_closed();
    note("closes, idle");
    end_and_linger();
  });
}

void H2UpstreamConnection::on_request_too_many(std::int32_t) {
  referee_.handed_back(nullptr);
}

void H2UpstreamConnection::on_go_away(std::uint32_t code) {
  note("hears a GOAWAY, " + std::to_string(code));
  const bool blames = code != NGHTTP2_NO_ERROR && code != NGHTTP2_INTERNAL_ERROR;
  if (blames && !erred_)
    on_violation("a good server's connection was ended with code " + std::to_string(code));
}

// Mostly it is the first to close then.
void H2UpstreamConnection::end_if_over() {
  if (!leaving_ || !exchanges_.empty() || finished_ || closed() || mute_) return;
  if (core_.random.one_in(3)) return;
  note("has answered all, and ends");
  end_and_linger();
}

// So that the end of what it has said is not lost to a reset. What still comes is not looked at.
void H2UpstreamConnection::end_and_linger() {
  finished_ = true;
  finish();
  core_.clock.after(linger_ns, [this] { close(); });
}

void H2UpstreamConnection::on_error(int error) {
  if (error == EPROTO) referee_.fail("an upstream got what is no record");
  close();
}

void H2UpstreamConnection::on_violation(const std::string& what) {
  std::string text = "HTTP/2 to a server: " + what + ":";
  for (const auto& [stream, exchange] : exchanges_)
    text += "\n  stream " + std::to_string(stream) + ", " + to_string(*exchange.course);
  referee_.fail(text);
}

}  // namespace ringside::sim
