// A scripted upstream server.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "message_reader.h"
#include "peer_connection.h"
#include "referee.h"

namespace ringside::sim {

// One connection: reads requests, and does what their scripts say.
class UpstreamConnection final : public PeerConnection {
 public:
  UpstreamConnection(Core& core, Referee& referee, std::shared_ptr<Stream> stream, bool secure);

 private:
  enum class After : std::uint8_t { next, end, die };

  void on_data(std::string_view data) override;
  void on_end() override;
  void on_error(int error) override;
  void on_sent() override;

  void moved();
  void head_arrived();
  void check_head(const Course& course);
  void body_arrived(Course& course);
  void request_over(Course& course);
  void answer(Course& course);
  void refuse(Course& course);
  void switch_protocols(Course& course);
  void tunnel_data(std::string_view data);
  void answer_sent();
  void idle();
  void die();
  void close_later();

  Referee& referee_;
  MessageReader reader_{MessageReader::Side::request};
  Course* course_ = nullptr;
  std::size_t body_bytes_ = 0;
  bool head_seen_ = false;
  bool request_whole_ = false;
  bool answering_ = false;  // the answer is queued
  bool answer_out_ = false;
  bool too_early_ = false;  // to be answered so
  bool tunnel_ = false;
  bool ending_ = false;
  bool peer_ended_ = false;
  After after_ = After::next;
  unsigned served_ = 0;
};

class UpstreamServer final : public Wakeable {
 public:
  // Binds and listens. `h2`: speaks nothing else.
  UpstreamServer(Core& core, Referee& referee, const net::Address& address, bool secure, bool h2);
  ~UpstreamServer();
  UpstreamServer(const UpstreamServer&) = delete;
  UpstreamServer& operator=(const UpstreamServer&) = delete;

  void on_ready() override;
  std::size_t open_connections() const;

 private:
  Core& core_;
  Referee& referee_;
  bool secure_;
  bool h2_;
  std::shared_ptr<Listener> listener_;
  std::vector<std::unique_ptr<PeerConnection>> connections_;
};

}  // namespace ringside::sim
