// A scripted client that speaks HTTP/2: one connection and the exchanges on it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dialling_peer.h"
#include "h2_session.h"

namespace ringside::sim {

class H2ClientPeer final : public DiallingPeer, private H2SessionListener {
 public:
  H2ClientPeer(Core& core, Referee& referee, const net::Address& to, std::vector<std::uint32_t> ids,
               Over over, bool secure);

 private:
  static constexpr std::uint64_t never_sent = ~std::uint64_t{0};
  struct Exchange {
    std::uint32_t script = 0;  // its number
    std::int32_t stream = 0;   // 0: not asked for yet
    std::string body;          // of the request
    std::size_t body_at = 0;
    std::uint64_t begin = never_sent;  // offsets in what is sent
    std::uint64_t end = never_sent;
    std::size_t received = 0;
    bool unlimited = false;  // sent before it was known how many the server takes at a time
    bool holding = false;    // until a 100 comes
    bool head_seen = false;
    bool end_seen = false;
    bool taken_back = false;  // it was reset by the client
    bool over = false;
  };
  // What the connection does when all of its exchanges are over.
  enum class Farewell : std::uint8_t { leave, half_close, go_away, idle };

  void connected(std::shared_ptr<Stream> stream) override;
  std::vector<std::uint32_t> rest() const override;
  std::uint64_t upstream_active_ns() override;
  const Course* waits_for() override;
  void give_up() override { leave(true); }
  void on_data(std::string_view data) override;
  void on_end() override;
  void on_error(int error) override;
  void on_sent() override;

  void on_stream_head(std::int32_t stream, const H2FieldList& fields) override;
  void on_stream_body(std::int32_t stream, std::string_view bytes) override;
  void on_stream_end(std::int32_t stream) override;
  void on_stream_closed(std::int32_t stream, std::uint32_t code) override;
  void on_go_away(std::uint32_t code) override;
  void on_request_leaves(std::int32_t stream) override;
  void on_request_unsent(std::int32_t stream) override;
  void on_message_whole(std::int32_t stream) override;
  Piece on_body_wanted(std::int32_t stream, std::span<char> room) override;
  H2FieldList trailers_of(std::int32_t stream) override;
  void on_violation(const std::string& what) override;

  Course& course(const Exchange& exchange) { return *referee_.find(exchange.script); }
  const Script& script(const Exchange& exchange) { return course(exchange).script; }
  Exchange* find(std::int32_t stream);
  bool going() const { return !closed() && !reported(); }
  void draw_manners();
  void pump();
  void ask_more();
  void ask(Exchange& exchange);
  void plan_abort(Exchange& exchange);
  void take_back(Exchange& exchange);
  void let_body_go(std::int32_t stream);
  void begun(Exchange& exchange);
  void final_head(Exchange& exchange, int status, const H2FieldList& fields);
  void use(std::int32_t stream, std::size_t bytes);
  std::uint64_t late_completions() const;
  void note_code(Exchange& exchange, std::uint32_t code);
  void exchange_over(Exchange& exchange, bool complete);
  void err();
  void change_windows();
  void all_over();
  void say_farewell();
  void half_close();
  void leave_to_itself();
  void note(std::string_view what);
  void leave(bool by_reset);
  void connection_over();

  std::vector<Exchange> exchanges_;
  std::unique_ptr<H2Session> session_;
  std::size_t asked_ = 0;  // exchanges so far
  std::size_t open_ = 0;   // of them, that are not over
  // How it behaves.
  std::size_t at_a_time_ = 1;
  std::size_t largest_ = 0;  // of the answers
  H2Session::Options windows_;
  std::uint64_t late_ns_ = 0;  // after that what came is used, and the windows grow
  Farewell farewell_ = Farewell::leave;
  unsigned piece_bytes_max_ = 16'384;
  bool end_alone_ = false;  // END_STREAM in a frame of its own
  std::size_t err_at_ = 0;  // after so many requests it does what it must not; 0: never

  std::uint64_t cut_at_ = never_sent;  // of what is sent: it goes away there
  bool cut_by_reset_ = false;
  bool leaving_ = false;  // at the end of this event
  bool erred_ = false;
  bool server_leaves_ = false;
  bool finished_ = false;  // it has said its FIN
  std::uint64_t late_before_ = 0;
};

}  // namespace ringside::sim
