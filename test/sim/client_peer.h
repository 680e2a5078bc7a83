// A scripted client: one connection and the exchanges on it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dialling_peer.h"
#include "message_reader.h"

namespace ringside::sim {

class ClientPeer final : public DiallingPeer {
 public:
  ClientPeer(Core& core, Referee& referee, const net::Address& to, std::vector<std::uint32_t> ids,
             Over over, bool secure = false);
  // Over TLS: it sends early data. Before start().
  void offer_early(Random random) { early_ = {random, std::make_shared<EarlyData>()}; }

 private:
  struct Sent {
    std::uint64_t begin, end;  // offsets in what is sent
  };

  void connected(std::shared_ptr<Stream> stream) override;
  std::vector<std::uint32_t> rest() const override;
  std::uint64_t upstream_active_ns() override;
  const Course* waits_for() override;
  void give_up() override { leave(); }
  void on_data(std::string_view data) override;
  void on_end() override;
  void on_error(int error) override;
  void on_sent() override;
  void on_confirmed() override { send_more(); }

  Course& course(std::size_t at) { return *referee_.find(ids_[at]); }
  bool waiting_for_answer() const { return answering_ < sending_; }
  void send_more();
  void send_request(std::size_t at);
  void send_rest();
  void begun(Course& course, bool first);
  void expect_over();
  std::size_t feed(std::string_view data);
  void head_arrived(Course& course);
  void message_over(Course& course);
  void tunnel_data(std::string_view data);
  void exchange_over(Course& course, bool complete);
  void ask_again(Course& course);
  void next_answer(const Course& course);
  void leave();
  void connection_over(bool reset);

  std::vector<std::uint32_t> ids_;
  MessageReader reader_{MessageReader::Side::response};
  std::vector<Sent> sent_;      // per exchange, once it is queued
  std::size_t sending_ = 0;     // exchanges queued so far
  std::size_t answering_ = 0;   // the one whose answer comes next
  std::string held_body_;       // until a 100 comes
  std::size_t holding_ = none;  // the exchange it belongs to
  bool head_seen_ = false;      // of the message being read
  bool tunnel_ = false;
  bool tunnel_ended_ = false;
  bool ignoring_ = false;     // what still comes on this connection
  std::size_t received_ = 0;  // of the present exchange
  std::optional<TlsPeer::Early> early_;
  static constexpr std::size_t none = ~std::size_t{0};
};

}  // namespace ringside::sim
