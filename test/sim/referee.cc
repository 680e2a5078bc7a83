#include "referee.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "marks.h"

namespace ringside::sim {

using proxy::Cause;

namespace {

// An exchange that lasted longer may have met a time-out of ringside (see make_snapshot).
constexpr std::uint64_t patient_ns = 9 * second_ns;
// With a request whose rest nobody reads, lingering is what ends first.
constexpr std::uint64_t linger_ns = 1'900 * millisecond_ns;
// Of the configuration that is simulated, less what a timer may be early by in the eyes of a
// client.
constexpr std::uint64_t keep_alive_ns = 74 * second_ns;
// Of a request's body that is kept for another try, and how many of those there are.
constexpr std::size_t kept_bytes_max = 64 * 1024;
constexpr unsigned tries_max = 3;
constexpr std::uint32_t protocol_error = 1;             // RFC 9113 §7
constexpr std::uint64_t body_idle_ns = 59 * second_ns;  // in the same way

// Targets end in "/<id>".
std::uint32_t id_of(std::string_view target) {
  const std::size_t slash = target.rfind('/');
  if (slash == std::string_view::npos || slash + 1 == target.size()) return ~0U;
  for (char c : target.substr(slash + 1)) {
    if (c < '0' || c > '9') return ~0U;
  }
  return static_cast<std::uint32_t>(std::atol(std::string(target.substr(slash + 1)).c_str()));
}

// A server that speaks HTTP/2 hears of no upgrade.
Answer answer_of(const Course& c) {
  const bool unheard = c.upstream_h2 && c.script.answer == Answer::switch_protocols;
  return unheard ? Answer::length : c.script.answer;
}

int status_of(const Course& c) {
  return answer_of(c) == c.script.answer ? c.script.status() : 200;
}

bool whole_answer(Answer answer) {
  return answer == Answer::length || answer == Answer::chunked || answer == Answer::until_close ||
         answer == Answer::no_content || answer == Answer::not_modified;
}

bool local_failure(int status) {
  return status == 408 || status == 502 || status == 503 || status == 504;
}

bool refusal(int status) {
  return status == 400 || status == 414 || status == 431 || status == 501 || status == 505;
}

bool shut_down(const Course& c) {
  return c.records != 0 && c.end.cause == Cause::shutdown;
}

base::Origin blamed(int status) {
  if (status == 502 || status == 504) return base::Origin::upstream;
  return status == 503 ? base::Origin::self : base::Origin::client;
}

}  // namespace

std::string to_string(const Course& c) {
  std::string out = to_string(c.script) + " | client: ";
  if (!c.begun) out += "not begun";
  out += "status " + std::to_string(c.status) + (c.complete ? " whole" : " not whole") + ", " +
         std::to_string(c.body_bytes) + " bytes";
  if (c.sent_whole) out += ", sent whole";
  if (c.client_left) out += ", left";
  if (c.from_upstream) out += ", from the upstream";
  out += " | upstream: " + std::to_string(c.upstream_heads) + " heads, " +
         std::to_string(c.upstream_body_bytes) + " bytes";
  if (c.handed_back != 0) out += ", " + std::to_string(c.handed_back) + " handed back";
  if (c.upstream_whole) out += ", whole";
  if (c.too_early != 0) out += ", too early " + std::to_string(c.too_early) + " times";
  if (c.sent.early != nullptr) {
    out += ", " + std::to_string(c.sent.early->bytes) + " bytes early";
    if (c.sent.early->refused) out += ", refused";
  }
  if (c.status == 101) {
    out += ", tunnel " + std::to_string(c.tunnel_bytes) + " of " +
           std::to_string(c.script.tunnel_down_bytes) + " down, " +
           std::to_string(c.upstream_tunnel_bytes) + " of " +
           std::to_string(c.script.tunnel_up_bytes) + " up";
  }
  char end[64];
  const std::size_t bytes = proxy::write(c.end, end);
  out += " | log: " + std::to_string(c.records) + " records";
  if (c.records != 0) {
    out += ", " + std::to_string(c.record_status) + " " + std::string(end, bytes);
  }
  if (c.ended) {
    out += " | " + std::to_string((c.ended_ns - c.begun_ns) / millisecond_ns) + " ms, harm " +
           std::to_string(c.harm_after - c.harm_before);
  }
  return out;
}

Course& Referee::add(const Script& script) {
  if (courses_.size() <= script.id) courses_.resize(script.id + 1);
  courses_[script.id].script = script;
  return courses_[script.id];
}

void Referee::fail(std::string what) {
  if (violation_.empty()) violation_ = std::move(what);
}

void Referee::fail(const Course& course, std::string_view what) {
  fail(std::string(what) + ": " + to_string(course));
}

void Referee::note(const Course& course, std::string_view what) {
  if (!verbose_) return;
  std::printf("%12.6f  %u %.*s\n", static_cast<double>(core_.clock.now_ns()) / 1e9,
              course.script.id, static_cast<int>(what.size()), what.data());
}

void Referee::begun(Course& course, std::uint64_t harm_before) {
  if (course.begun) return;
  course.begun = true;
  course.begun_ns = core_.clock.now_ns();
  course.harm_before = harm_before;
  if (verbose_) note(course, "begun: " + to_string(course.script));
}

void Referee::ended(Course& course) {
  if (course.ended) return fail(course, "an exchange ended twice");
  course.ended = true;
  course.ended_ns = core_.clock.now_ns();
  course.harm_after = core_.faults.harm();
  progress();
  if (verbose_) note(course, "ended: " + to_string(course));
}

void Referee::got_head(Course& c, int status, std::string_view sim_id) {
  // A byte of it can come only after the request has begun.
  if (!c.begun) fail(c, "an answer before its request");
  c.status = status;
  c.from_upstream = !sim_id.empty();
  if (c.from_upstream && sim_id != std::to_string(c.script.id))
    fail(c, "the answer of exchange " + std::string(sim_id));
}

void Referee::got_body(Course& c, std::string_view piece) {
  if (c.from_upstream) {
    const std::size_t wrong = first_wrong(c.script.id, Lane::response, c.body_bytes, piece);
    if (wrong != std::string_view::npos)
      fail(c, "a wrong byte in a response, at " + std::to_string(c.body_bytes + wrong));
  }
  c.body_bytes += piece.size();
}

// What has begun again is judged by how it ends then.
void Referee::too_early(Course& c) {
  if (verbose_) note(c, "too early: " + to_string(c));
  progress();
  const EarlyData* early = c.sent.early.get();
  const bool claimed = c.script.claims_early && !c.script.may_be_early() && early != nullptr &&
                       early->bytes != 0 && !early->refused;
  if (c.from_upstream ? c.too_early >= c.upstream_too_early : !claimed) {
    fail(c, "a 425 that nothing explains");
  }
  if (std::exchange(tamper_, Tamper::none) != Tamper::ask_again) ++c.too_early;
  c.status = 0;
  c.from_upstream = false;
  c.interims = 0;
  c.body_bytes = 0;
  c.upstream_whole = c.upstream_sent_head = false;
}

void Referee::judge_early(Course& c, bool says_early) {
  const Script& s = c.script;
  const EarlyData* early = c.sent.early.get();
  const bool confirmed = early == nullptr || early->confirmed;
  const bool taken = early != nullptr && early->bytes != 0 && !early->refused;
  const bool whole = taken && c.sent.end <= early->bytes;
  if (!confirmed && !s.may_be_early()) fail(c, "an unsafe request did not wait for the handshake");
  if ((!confirmed || (whole && s.may_be_early())) && !says_early)
    fail(c, "an upstream was not told of early data");
  const bool may_say = taken && c.sent.maybe_early && s.may_be_early();
  if (says_early && !may_say && !s.claims_early) fail(c, "early data was made up");
  if (!says_early && s.claims_early) fail(c, "what was early before is not any more");
  // Who has answered 425 may be asked again by the client alone.
  if (c.upstream_too_early > c.too_early && core_.faults.harm() == c.harm_before)
    fail(c, "ringside has asked again after a 425");
}

Course* Referee::upstream_got_head(std::string_view target) {
  Course* course = find(id_of(target));
  if (course == nullptr || !course->script.reaches_upstream()) {
    fail("a request that must not reach an upstream did: " + std::string(target));
    return nullptr;
  }
  ++course->upstream_heads;
  course->upstream_body_bytes = 0;
  course->upstream_whole = false;
  course->upstream_h2 = false;
  note(*course, "upstream got the head");
  return course;
}

void Referee::upstream_got_body(Course& c, std::size_t at, std::string_view piece) {
  if (first_wrong(c.script.id, Lane::request, at, piece) != std::string_view::npos)
    fail(c, "a wrong byte in a request");
  c.upstream_body_bytes = at + piece.size();
}

void Referee::upstream_got_all(Course& c, std::size_t bytes) {
  c.upstream_whole = true;
  if (bytes != (c.script.has_request_body() ? c.script.request_bytes : 0))
    fail(c, "a cut request looked whole");
}

void Referee::handed_back(Course* course) {
  hands_back_ = true;
  if (course == nullptr) return;
  ++course->handed_back;
  note(*course, "upstream hands it back");
}

void Referee::record(const proxy::AccessRecord& record) {
  const Tamper how =
      tamper_ == Tamper::ask_again ? Tamper::none : std::exchange(tamper_, Tamper::none);
  if (how == Tamper::drop_record) return;
  proxy::AccessRecord changed = record;
  if (how == Tamper::wrong_reason) {
    const bool was_whole = record.end.cause == Cause::complete;
    changed.end.cause = was_whole ? Cause::internal : Cause::complete;
  }
  take(changed);
  if (how == Tamper::double_record) take(changed);
}

void Referee::take(const proxy::AccessRecord& record) {
  ++records_;
  progress();
  Course* course = find(id_of(record.target));
  if (verbose_ && course == nullptr) {
    std::printf("              logged %d for \"%.*s\"\n", record.status,
                static_cast<int>(std::min<std::size_t>(record.target.size(), 60)),
                record.target.data());
  }
  if (course == nullptr || course->script.ask == Ask::malformed) return;
  record.status == 425 ? ++course->too_early_records : ++course->records;
  course->record_status = record.status;
  course->record_reused = record.reused;
  course->record_tries = record.tries;
  course->end = record.end;
  course->record_ns = core_.clock.now_ns();
  course->harm_after = core_.faults.harm();
  if (verbose_) {
    char end[64];
    const std::size_t bytes = proxy::write(record.end, end);
    note(*course, "logged " + std::to_string(record.status) + " " + std::string(end, bytes));
  }
  if (course->records > 1) fail(*course, "more than one log record");
  if (record.status == 425) take_too_early(*course);
}

void Referee::take_too_early(Course& c) {
  const bool refused = c.end.cause == Cause::not_allowed;
  if (refused ? !c.script.claims_early : c.upstream_too_early == 0)
    fail(c, "a 425 in the log that nothing explains");
}

bool Referee::harmed(const Course& course) const {
  return relaxed_ || course.harm_after != course.harm_before;
}

// A request on a connection that its server closes at that moment fails unless it may be tried
// again, and meets a good one then.
bool Referee::met_stale_connection(const Course& c) const {
  const bool may_be_stale = idle_closed_ || core_.faults.harm() != 0;
  // Its receive may also have met a shortage, of which the completion came with the request.
  const bool failed = c.status == 502 || (c.status == 503 && c.end.cause == Cause::no_resources);
  if (!may_be_stale || !failed || !c.record_reused) return false;
  return !c.script.safe_method() || c.record_tries > 1;
}

// A request that servers hand back is sent again, so often, and unless its body is gone by then or
// the client was told to go on.
bool Referee::was_handed_back(const Course& c) const {
  if (c.status != 502 || !hands_back_) return false;
  const bool kept = !c.script.has_request_body() ||
                    (c.script.request_bytes <= kept_bytes_max && !c.script.expect);
  return !kept || c.record_tries >= tries_max;
}

// Whether nothing but its own script can have touched the exchange.
bool Referee::strict(const Course& c) const {
  // A stop ends what it meets; so does the end of the time that a drain gives.
  if (c.ended_ns >= stop_began_ns_ || (drain_began_ns_ != never_ns && shut_down(c))) return false;
  if (harmed(c) || c.client_left || c.script.aborts()) return false;
  // What it has sent for a tunnel that an HTTP/2 server did not hear of is left unread, and the
  // reset of that may take the answer with it.
  if (answer_of(c) != c.script.answer && c.script.early_tunnel) return false;
  const std::uint64_t over_ns = std::max(c.ended_ns, c.record_ns);
  return over_ns - c.begun_ns < (may_leave_unread(c) ? linger_ns : patient_ns);
}

// Whether bytes of the client may be left unread when ringside closes, so that what it has sent
// last is lost unless it arrives while ringside lingers.
bool Referee::may_leave_unread(const Course& c) const {
  const std::size_t next = c.script.id + 1;
  const bool followed = next < courses_.size() && courses_[next].script.pipelined;
  // Its server closed the connection that it was sent on, maybe in the middle of its body.
  const bool met_stale = c.record_status == 502 && c.record_reused && !c.script.safe_method();
  // Answered here while its body was on the way.
  const bool answered_early =
      local_failure(c.record_status) && c.end.stage == proxy::Stage::send_request;
  // Its end is a record, which may come later than ringside lingers.
  const bool end_is_late = c.secure && c.script.conduct == Conduct::half_close;
  // Nothing can be announced to it before the end of its handshake, which may come as late.
  const bool early = c.sent.early != nullptr && c.sent.early->bytes != 0;
  // An HTTP/2 client says that it has read what came, and the drain may have ended its connection.
  const bool acknowledged = c.script.h2 && c.ended_ns >= drain_began_ns_;
  return followed || met_stale || answered_early || end_is_late || early || acknowledged ||
         c.script.early_answer || c.script.expect || c.script.ask == Ask::malformed;
}

void Referee::judge_all() {
  for (const Course& course : courses_)
    judge(course);
}

void Referee::judge(const Course& c) {
  if (!c.ended) return fail(c, "an exchange never ended");
  if (c.begun) {
    if (c.script.answer == Answer::switch_protocols && c.status == 101) {
      judge_tunnel(c);
    } else if (c.refused) {
      judge_refused(c);
    } else if (c.complete) {
      judge_complete(c);
    } else {
      judge_incomplete(c);
    }
    judge_request(c);
  }
  judge_record(c);
}

void Referee::judge_complete(const Course& c) {
  const Script& s = c.script;
  if (c.from_upstream) {
    if (!whole_answer(answer_of(c))) return fail(c, "an answer that was never given whole");
    if (c.status != status_of(c)) return fail(c, "the status was changed");
    judge_body(c);
    const bool trailers = s.h2 && s.trailers && s.answer == Answer::chunked && s.ask != Ask::head;
    if (trailers && c.trailers != 1) fail(c, "trailers were lost");
    if (strict(c) && !s.http10 && c.interims != s.interims) fail(c, "interim responses were lost");
    return;
  }
  switch (s.ask) {
    case Ask::local:
      if (c.status == 200) return;
      break;
    case Ask::redirect:
      if (c.status == 308) return;
      break;
    case Ask::not_found:
      if (c.status == 404) return;
      break;
    case Ask::malformed:
      if (refusal(c.status)) return;
      break;
    default:
      break;
  }
  if (!local_failure(c.status)) return fail(c, "a status that nothing explains");
  if (!strict(c) || met_stale_connection(c) || was_handed_back(c)) return;
  if (s.stalls && c.status == 408) return;
  const bool upstream_fails = s.answer == Answer::die_before_head ||
                              s.answer == Answer::malformed || s.answer == Answer::die_in_body;
  if (s.reaches_upstream() && upstream_fails && c.status == 502) return;
  fail(c, "an exchange failed without a cause");
}

void Referee::judge_body(const Course& c) {
  const Script& s = c.script;
  const bool bodied = s.ask != Ask::head && status_of(c) == 200;
  const std::size_t expected = bodied ? s.response_bytes : 0;
  if (c.body_bytes != expected) fail(c, "a response looked whole and was not");
}

// A client may send it again, whatever it is (RFC 9113 §8.7).
void Referee::judge_refused(const Course& c) {
  if (c.upstream_heads != 0 || c.records != 0) fail(c, "a request was refused that was served");
}

void Referee::judge_incomplete(const Course& c) {
  if (!strict(c)) return;
  if (c.script.h2 && c.script.ask == Ask::malformed && c.reset_code == protocol_error) return;
  if (c.status != 0 && c.script.answer == Answer::die_in_body) return;
  // Requests behind one that closed the connection are not served.
  if (c.status == 0 && (c.script.pipelined || !c.sent_whole)) return;
  if (c.status == 0 && c.ended_ns >= drain_began_ns_) return;
  // The answer before it was so long on its way that ringside has waited for longer than
  // keep-alive.
  if (c.status == 0 && c.script.id != 0) {
    const Course& before = courses_[c.script.id - 1];
    if (before.records != 0 && before.record_ns + keep_alive_ns <= c.ended_ns) return;
  }
  fail(c, "an exchange was cut without a cause");
}

void Referee::judge_tunnel(const Course& c) {
  if (!strict(c)) return;
  if (c.tunnel_bytes != c.script.tunnel_down_bytes) fail(c, "tunnel bytes were lost downwards");
  // The upstream may get the last of it after the client is through.
  const bool calm_since = core_.faults.harm() == c.harm_before;
  if (calm_since && c.upstream_tunnel_bytes != c.script.tunnel_up_bytes) {
    fail(c, "tunnel bytes were lost upwards");
  }
}

void Referee::judge_request(const Course& c) {
  const Script& s = c.script;
  const unsigned served = c.upstream_heads - c.handed_back;
  if (!s.safe_method() && served > 1) fail(c, "an unsafe request was sent twice");
  // A 425 makes the client ask again.
  const unsigned asked = 1 + c.upstream_too_early;
  if (served > 2 * asked || c.upstream_heads > (tries_max + 1) * asked)
    fail(c, "a request was sent three times");
  const bool must_have_arrived = c.complete && c.from_upstream && !s.early_answer && !s.expect;
  if (must_have_arrived && !c.upstream_whole) fail(c, "an answer to a request that never arrived");
}

void Referee::judge_record(const Course& c) {
  if (c.script.ask == Ask::malformed) return;
  if (c.records > 1) return fail(c, "more than one log record");
  // A head that never became whole tells the log no target.
  const bool nameless = c.status == 408 && c.upstream_heads == 0;
  const bool answered = c.status != 0 && c.status != 425 && !nameless;
  const unsigned all = c.records + c.too_early_records;
  if (answered && c.records == 0) return fail(c, "no log record");
  if (c.upstream_heads != 0 && all == 0) return fail(c, "no log record");
  if (c.too_early_records < c.too_early) return fail(c, "no log record of a 425");
  if (c.records == 0) return;
  if (c.status != 0 && c.record_status != c.status) return fail(c, "a wrong status in the log");
  if (c.status == 0) return;
  const bool says_complete = c.end.cause == Cause::complete;
  const bool as_asked = c.from_upstream || c.status == 200 || c.status == 308;
  if (!as_asked) {
    if (says_complete || c.end.who != blamed(c.status)) fail(c, "a wrong end reason");
    const bool stalled = c.script.stalls && c.status == 408;
    const bool too_slow = c.end.cause == Cause::too_slow;
    // Without a free buffer a client is not called slow; then the idle body's time runs out.
    const bool idle = c.end.cause == Cause::timed_out && c.record_ns - c.begun_ns >= body_idle_ns;
    if (stalled ? !too_slow && !idle && !harmed(c) : too_slow && strict(c)) {
      fail(c, "a wrong end reason");
    }
  } else if (strict(c)) {
    const bool whole = c.complete || c.status == 101;
    // A client that got its answer may keep the rest of its request to itself, and may be gone
    // before ringside hears that its last bytes have arrived.
    const bool left_since = whole && (c.end.who == base::Origin::client ||
                                      (!c.sent_whole && c.end.cause == Cause::shutdown));
    if (whole != says_complete && !left_since) fail(c, "a wrong end reason");
    if (!whole && c.end.who != base::Origin::upstream) fail(c, "the wrong one is blamed");
  }
}

}  // namespace ringside::sim
