// The client of the counted traffic where it is HTTP/2.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "h2_session.h"
#include "peer_connection.h"
#include "traffic.h"

namespace ringside::budget {

// Its windows are so large that it never makes the proxy wait.
class H2Client final : public Client, private sim::H2SessionListener {
 public:
  H2Client(sim::Core& core, const Scenario& scenario, Tally& tally);
  void ask() override;

 private:
  void on_data(std::string_view data) override;
  void on_sent() override { pump(); }

  void on_stream_head(std::int32_t stream, const sim::H2FieldList& fields) override;
  void on_stream_body(std::int32_t stream, std::string_view bytes) override;
  void on_stream_end(std::int32_t) override {}
  void on_stream_closed(std::int32_t stream, std::uint32_t code) override;
  void on_go_away(std::uint32_t) override { tally_.wrong = true; }
  void on_request_leaves(std::int32_t) override {}
  void on_request_unsent(std::int32_t) override { tally_.wrong = true; }
  void on_message_whole(std::int32_t) override {}
  Piece on_body_wanted(std::int32_t stream, std::span<char> room) override;
  sim::H2FieldList trailers_of(std::int32_t) override { return {}; }
  void on_violation(const std::string&) override { tally_.wrong = true; }
  void pump();

  sim::H2Session session_;
  std::map<std::int32_t, std::size_t> uploaded_;
  std::size_t received_ = 0;  // of a round
};

}  // namespace ringside::budget
