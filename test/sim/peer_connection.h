// What scripted clients and upstreams have in common: a connection without a ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core.h"
#include "tls_peer.h"

namespace ringside::sim {

// Everything happens in events of the clock. The owner keeps it until the world ends.
class PeerConnection : public Wakeable {
 public:
  explicit PeerConnection(Core& core) : core_(core) {}
  virtual ~PeerConnection();
  PeerConnection(const PeerConnection&) = delete;
  PeerConnection& operator=(const PeerConnection&) = delete;

  void on_ready() override { wake_after(0); }
  bool closed() const { return closed_; }

 protected:
  // Called from events. Each may send, finish, close or reset.
  virtual void on_data(std::string_view data) = 0;
  virtual void on_end() = 0;
  // EPROTO: what came is no record of TLS. ECONNABORTED: the end was not announced, or an alert
  // came.
  virtual void on_error(int error) = 0;
  virtual void on_sent() = 0;  // more of what was to be sent has left
  // What is sent from here on is no early data.
  virtual void on_confirmed() {}
  // Anything else that may be ready; false when there is no stream to serve yet.
  virtual bool prepare() { return true; }

  // `tls`: null where it speaks in clear.
  void attach(std::shared_ptr<Stream> stream, std::unique_ptr<TlsPeer> tls = nullptr);
  void send(std::string_view bytes) { out_.append(bytes); }
  // FIN, once everything was sent.
  void finish();
  void close();
  void reset();
  // Moves at most `bytes` at a time, with a pause after each, that many times.
  struct Pace {
    std::size_t bytes = 0;
    std::uint64_t pause_ns = 0;
    unsigned steps = 0;
  };
  void set_pace(const Pace& pace) { pace_ = pace; }
  void wake_after(std::uint64_t delay_ns);

  // What is sent now is early data.
  bool early() const { return tls_ != nullptr && tls_->early(); }
  bool drained() const {
    return out_at_ == out_.size() && (tls_ == nullptr || (sealed_ == 0 && tls_->drained()));
  }
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::uint64_t bytes_queued() const { return bytes_sent_ + sealed_ + (out_.size() - out_at_); }
  // The most that on_sent must hear of before anything further leaves.
  void stop_sending_at(std::uint64_t offset) { send_limit_ = offset; }

  Core& core_;

 private:
  void serve();
  bool write_some();
  bool read_some();
  bool end_sending();
  std::size_t may_send() const;
  void took(std::size_t bytes);
  void lose_sending(int error);
  // With TLS.
  bool write_records();
  void end_handshake();
  void read_records(std::string_view bytes);
  void records_ended();
  void farewell();
  std::size_t paced(std::size_t bytes) const;

  std::shared_ptr<Stream> stream_;
  std::unique_ptr<TlsPeer> tls_;
  std::size_t sealed_ = 0;  // bytes of `out_` that are in records which have not left whole
  std::string out_;
  std::size_t out_at_ = 0;
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t send_limit_ = ~std::uint64_t{0};
  Pace pace_;
  std::uint64_t planned_ns_ = never_ns;  // of the next serve()
  std::uint64_t pace_until_ns_ = 0;
  bool finishing_ = false;
  bool finished_ = false;
  bool closed_ = false;
  bool saw_end_ = false;
  bool reset_seen_ = false;
};

}  // namespace ringside::sim
