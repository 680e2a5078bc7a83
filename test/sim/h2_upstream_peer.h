// A scripted upstream server that speaks HTTP/2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "h2_session.h"
#include "peer_connection.h"
#include "referee.h"

namespace ringside::sim {

// One connection: many requests at a time, answered in any order, as their scripts say. What it is
// like, and when it misbehaves, is drawn when it is made.
class H2UpstreamConnection final : public PeerConnection, private H2SessionListener {
 public:
  H2UpstreamConnection(Core& core, Referee& referee, std::shared_ptr<Stream> stream, bool secure);

 private:
  static constexpr std::uint64_t never_sent = ~std::uint64_t{0};
  // A request.
  struct Exchange {
    Course* course = nullptr;
    std::size_t request_bytes = 0;  // of its body, so far
    bool request_whole = false;
    bool trailers = false;  // of the request
    std::string body;       // of the answer
    std::size_t body_at = 0;
    bool begun = false;     // something of an answer was said: it cannot be handed back
    bool answered = false;  // all of it was
    bool scripted = false;  // it is reset from here
  };

  void on_data(std::string_view data) override;
  void on_end() override { close(); }
  void on_error(int error) override;
  void on_sent() override;

  void on_stream_head(std::int32_t stream, const H2FieldList& fields) override;
  void on_stream_body(std::int32_t stream, std::string_view bytes) override;
  void on_stream_end(std::int32_t stream) override;
  void on_stream_closed(std::int32_t stream, std::uint32_t code) override;
  void on_go_away(std::uint32_t code) override;
  void on_request_too_many(std::int32_t stream) override;
  void on_message_whole(std::int32_t stream) override;
  Piece on_body_wanted(std::int32_t stream, std::span<char> room) override;
  H2FieldList trailers_of(std::int32_t stream) override;
  void on_violation(const std::string& what) override;

  H2Session::Options draw_manners();
  void draw_misdeeds();
  Exchange* find(std::int32_t stream);
  void moved();
  void note(const std::string& what);
  void pump();
  // Later, as long as the connection is there; then frames leave.
  void after(std::uint64_t most_ns, std::function<void()> what);
  void check_head(const Course& course, const H2FieldList& fields);
  void request_began(std::int32_t stream, const H2FieldList& fields);
  void plan_fate(std::int32_t stream);
  void plan_events();
  void plan_answer(std::int32_t stream);
  void answer(std::int32_t stream);
  void use(std::int32_t stream, std::size_t bytes);
  void refuse(std::int32_t stream);
  // RST_STREAM, of a request that may have been served.
  void give_up(std::int32_t stream);
  void give_up_in_script(std::int32_t stream);
  void go_away(std::uint32_t code);
  void go_away_with_error();
  void err();
  void end_if_over();
  void close_when_idle();
  void end_and_linger();

  Referee& referee_;
  bool secure_;
  std::unique_ptr<H2Session> session_;
  std::map<std::int32_t, Exchange> exchanges_;  // by stream
  const Course* last_ = nullptr;                // that was asked for
  std::int32_t highest_ = 0;                    // stream that came
  std::int32_t kept_ = 0;                       // the highest that cannot be handed back
  unsigned asked_ = 0;                          // requests so far
  // How it behaves.
  std::uint64_t late_ns_ = 0;  // after that what came is used, and the windows grow
  bool no_window_ = false;     // at first
  bool pauses_ = false;
  unsigned piece_bytes_max_ = 16'384;
  // After so many requests; 0: never.
  unsigned go_away_at_ = 0;
  unsigned go_away_error_at_ = 0;
  unsigned err_at_ = 0;
  unsigned lower_at_ = 0;
  unsigned change_windows_at_ = 0;
  std::uint64_t cut_at_ = never_sent;  // of what is sent: it goes away there

  bool mute_ = true;  // no SETTINGS yet
  bool erred_ = false;
  bool leaving_ = false;  // GOAWAY was said
  bool finished_ = false;
};

}  // namespace ringside::sim
