// Watches all exchanges and says what was wrong.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ringside/proxy/access_record.h"

#include "core.h"
#include "early_data.h"
#include "script.h"

namespace ringside::sim {

// What became of one exchange, as seen by everybody.
struct Course {
  Script script;

  bool secure = false;      // the client speaks TLS
  bool begun = false;       // the client has sent something of it
  bool sent_whole = false;  // or everything
  bool ended = false;       // the client is through with it
  std::uint64_t begun_ns = 0;
  std::uint64_t ended_ns = 0;
  std::uint64_t active_ns = 0;  // when the upstream last moved a byte of it
  std::uint64_t harm_before = 0;
  std::uint64_t harm_after = 0;

  int status = 0;  // of the final head
  bool from_upstream = false;
  bool complete = false;  // the response was whole
  bool client_left = false;
  unsigned interims = 0;
  unsigned trailers = 0;         // of HTTP/2, blocks
  bool refused = false;          // of HTTP/2: nobody has begun to serve it
  std::uint32_t reset_code = 0;  // of HTTP/2
  std::size_t body_bytes = 0;
  std::size_t tunnel_bytes = 0;  // that the client got

  unsigned upstream_heads = 0;
  bool upstream_h2 = false;     // the last of them came to a server that speaks it
  unsigned handed_back = 0;     // of them, by a server that has done nothing with it
  bool upstream_whole = false;  // the upstream got all of the request
  bool upstream_sent_head = false;
  std::size_t upstream_body_bytes = 0;
  std::size_t upstream_tunnel_bytes = 0;

  // How it was sent last, with HTTP/1.
  struct Sent {
    std::shared_ptr<const EarlyData> early;  // of its connection; null: there is none
    std::uint64_t end = 0;                   // in what that sends
    bool maybe_early = false;                // or behind what was, and has not been read yet
  };
  Sent sent;
  void asked(Sent how) { sent = std::move(how); }
  // Answers of 425 (RFC 8470 §5.2), after which the client asks again.
  unsigned too_early = 0;  // that the client got
  unsigned upstream_too_early = 0;
  unsigned too_early_records = 0;

  unsigned records = 0;
  std::uint16_t record_status = 0;
  std::uint64_t record_ns = 0;
  bool record_reused = false;
  unsigned record_tries = 0;
  proxy::EndReason end;
};

class Referee final : public proxy::AccessSink {
 public:
  Referee(Core& core, bool verbose) : core_(core), verbose_(verbose) {}

  Course& add(const Script& script);
  Course* find(std::uint32_t id) { return id < courses_.size() ? &courses_[id] : nullptr; }
  const std::vector<Course>& courses() const { return courses_; }

  // Only the first violation is kept: the others are often its consequences.
  void fail(std::string what);
  bool failed() const { return !violation_.empty(); }
  const std::string& violation() const { return violation_; }
  // A server closed an idle connection: one request may run into it.
  void idle_closed() { idle_closed_ = true; }
  // Ringside was told to drain: requests that it has not begun to serve need not be answered.
  void drain_began() { drain_began_ns_ = core_.clock.now_ns(); }
  void progress() { ++progress_; }
  std::uint64_t progress_made() const { return progress_; }
  // Ringside was told to stop at once.
  void stop_began() { stop_began_ns_ = core_.clock.now_ns(); }
  // The whole run is short of something: any exchange may fail, visibly.
  void relax_all() { relaxed_ = true; }
  bool relaxed() const { return relaxed_; }

  // `harm_before`: what had gone wrong when its connection was made.
  void begun(Course& course, std::uint64_t harm_before);
  void ended(Course& course);
  // What a client got: a final head, and bytes of the body.
  void got_head(Course& course, int status, std::string_view sim_id);
  void got_body(Course& course, std::string_view piece);
  // All of a 425; the exchange begins again.
  void too_early(Course& course);
  // What an upstream got: a head, with the target it names; then the body. Null: it should not have
  // come.
  Course* upstream_got_head(std::string_view target);
  // Whether that head has `Early-Data: 1`.
  void judge_early(Course& course, bool says_early);
  void upstream_got_body(Course& course, std::size_t at, std::string_view piece);
  void upstream_got_all(Course& course, std::size_t bytes);
  // A server takes no further requests, or not this one: whoever can sends them again. `course` may
  // be null, as requests that are on their way are not seen.
  void handed_back(Course* course);
  // No request of this run can have needed another try so far.
  bool one_try() const { return !idle_closed_ && !hands_back_ && core_.faults.harm() == 0; }
  void note(const Course& course, std::string_view what);
  bool verbose() const { return verbose_; }

  void record(const proxy::AccessRecord& record) override;
  std::uint64_t records() const { return records_; }
  // For breaking things on purpose.
  enum class Tamper : std::uint8_t { none, drop_record, double_record, wrong_reason, ask_again };
  void tamper(Tamper how) { tamper_ = how; }

  // When everything is over.
  void judge_all();

 private:
  void take(const proxy::AccessRecord& record);
  void take_too_early(Course& course);
  void judge(const Course& course);
  void judge_complete(const Course& course);
  void judge_incomplete(const Course& course);
  void judge_refused(const Course& course);
  void judge_tunnel(const Course& course);
  void judge_body(const Course& course);
  void judge_request(const Course& course);
  void judge_record(const Course& course);
  bool strict(const Course& course) const;
  bool may_leave_unread(const Course& course) const;
  bool harmed(const Course& course) const;
  bool met_stale_connection(const Course& course) const;
  bool was_handed_back(const Course& course) const;
  void fail(const Course& course, std::string_view what);

  Core& core_;
  bool verbose_;
  std::vector<Course> courses_;
  std::string violation_;
  bool idle_closed_ = false;
  std::uint64_t drain_began_ns_ = never_ns;
  std::uint64_t progress_ = 0;
  std::uint64_t records_ = 0;
  bool relaxed_ = false;
  bool hands_back_ = false;
  std::uint64_t stop_began_ns_ = never_ns;
  Tamper tamper_ = Tamper::none;
};

std::string to_string(const Course& course);

}  // namespace ringside::sim
