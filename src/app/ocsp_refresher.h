// Keeps the OCSP responses of certificates fresh.
#pragma once

#include <chrono>
#include <expected>
#include <functional>
#include <memory>
#include <string>

#include "ringside/base/logger.h"
#include "ringside/tls/material.h"
#include "ringside/tls/ocsp.h"

namespace ringside::app {

// The response to a question, or why there is none. Blocks; returns soon once `cancel` (a
// descriptor) is readable.
using OcspFetch = std::function<std::expected<tls::Der, std::string>(
    const tls::OcspQuestion& question, int cancel)>;

// fetch_ocsp, with 10 s for all of it.
std::expected<tls::Der, std::string> fetch_ocsp_in_time(const tls::OcspQuestion& question,
                                                        int cancel);

struct OcspTiming {
  // After a failure; twice as long after each further one.
  std::chrono::milliseconds retry_first{10'000};
  std::chrono::milliseconds retry_max{3'600'000};
  // After a success, whatever the response says.
  std::chrono::milliseconds refresh_min{60'000};
  // Half of what responses are good for as a rule, so that a revocation is noticed.
  std::chrono::milliseconds refresh_max{4 * 24 * 3'600'000LL};
};

// `failures` in a row, at least 1. `random` in [0, 1) spreads those who failed together: the result
// is 75% to 125% of the nominal time.
std::chrono::milliseconds retry_after(const OcspTiming& timing, unsigned failures, double random);

// When to ask again for a response that is good for a while: at half of that, or at half of what is
// left when that is over; 90% to 110% of it.
std::chrono::milliseconds refresh_after(const OcspTiming& timing, const tls::Staple& staple,
                                        tls::UnixSeconds now, double random);

// Asks for the response of each certificate, on one thread of its own, and puts it where all rings
// find it. Nothing that goes wrong is more than a line in the log: the response of before is
// stapled until it expires.
//
// Owner: the control thread, which calls all members.
class OcspRefresher {
 public:
  // `logger` must live until stop() or the destructor has returned.
  explicit OcspRefresher(base::Logger& logger, OcspFetch fetch = fetch_ocsp_in_time,
                         OcspTiming timing = {});
  ~OcspRefresher();
  OcspRefresher(const OcspRefresher&) = delete;
  OcspRefresher& operator=(const OcspRefresher&) = delete;

  // From now on, the certificates of `material` with an OcspQuestion, and no others. What is known
  // already of one of them is put into its slot before this returns.
  void watch(const tls::Material& material);

  // Ends the thread: nothing is put anywhere and nothing is logged once this has returned.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ringside::app
