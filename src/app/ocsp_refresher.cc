#include "ocsp_refresher.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <ctime>
#include <map>
#include <mutex>
#include <random>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "ocsp_fetch.h"

namespace ringside::app {
namespace {

using base::LogLevel;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds fetch_limit{10'000};

std::string date_text(tls::UnixSeconds when) {
  const auto seconds = static_cast<std::time_t>(when);
  std::tm parts{};
  std::array<char, 64> text{};
  ::gmtime_r(&seconds, &parts);
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

std::string key_of(const tls::OcspQuestion& question) {
  return {question.certificate.begin(), question.certificate.end()};
}

milliseconds scaled(milliseconds nominal, double factor) {
  return milliseconds(std::llround(static_cast<double>(nominal.count()) * factor));
}

}  // namespace

std::expected<tls::Der, std::string> fetch_ocsp_in_time(const tls::OcspQuestion& question,
                                                        int cancel) {
  return fetch_ocsp(question, cancel, fetch_limit);
}

milliseconds retry_after(const OcspTiming& timing, unsigned failures, double random) {
  milliseconds nominal = timing.retry_first;
  for (unsigned i = 1; i < failures && nominal < timing.retry_max; ++i)
    nominal *= 2;
  return scaled(std::min(nominal, timing.retry_max), 0.75 + random / 2);
}

milliseconds refresh_after(const OcspTiming& timing, const tls::Staple& staple,
                           tls::UnixSeconds now, double random) {
  const tls::UnixSeconds half = staple.this_update + (staple.next_update - staple.this_update) / 2;
  const tls::UnixSeconds seconds = half > now ? half - now : (staple.next_update - now) / 2;
  const milliseconds nominal = std::clamp(milliseconds(std::chrono::seconds(seconds)),
                                          timing.refresh_min, timing.refresh_max);
  return scaled(nominal, 0.9 + random / 5);
}

// `mutex` guards all that changes, and `logger` is used under it, only while `stopping` is false.
struct OcspRefresher::State {
  struct Item {
    std::string title;  // "[tls.a]: site.pem"
    tls::OcspQuestion question;
    std::vector<std::shared_ptr<tls::StapleSlot>> slots;  // several entries may have it
    std::shared_ptr<const tls::Staple> staple;            // null: none that is good
    Clock::time_point due;
    unsigned failures = 0;  // in a row
  };
  using Items = std::map<std::string, Item>;  // by certificate

  State(base::Logger& log_to, OcspFetch how, const OcspTiming& times)
      : logger(log_to),
        fetch(std::move(how)),
        timing(times),
        cancel(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        random(std::random_device{}()) {}
  ~State() {
    if (cancel >= 0) ::close(cancel);
  }

  base::Logger& logger;
  const OcspFetch fetch;
  const OcspTiming timing;
  const int cancel;  // readable from stop() on
  std::mutex mutex;
  std::condition_variable changed;
  Items items;
  bool stopping = false;
  std::minstd_rand random;
  std::thread thread;  // the owner's

  void add(Items& fresh, const std::string& entry, const tls::Certificate& certificate);
  void start();
  void work();
  void take(Item& item, const std::expected<tls::Der, std::string>& response);
  void succeed(Item& item, tls::OcspAnswer answer);
  void fail(Item& item, const std::string& why);
  double draw() { return std::uniform_real_distribution<double>(0, 1)(random); }
};

void OcspRefresher::State::add(Items& fresh, const std::string& entry,
                               const tls::Certificate& certificate) {
  const tls::OcspQuestion& question = *certificate.ocsp_question;
  const auto [at, is_new] = fresh.try_emplace(key_of(question));
  Item& item = at->second;
  if (is_new) {
    const auto known = items.find(key_of(question));
    if (known != items.end()) {
      item = known->second;
      item.slots.clear();
    } else {
      item.due = Clock::now();
    }
    item.title = "[tls." + entry + "]: " + certificate.file;
    item.question = question;
  }
  item.slots.push_back(certificate.staple);
  certificate.staple->put(item.staple);
}

void OcspRefresher::State::start() {
  try {
    thread = std::thread([this] { work(); });
    ::pthread_setname_np(thread.native_handle(), "ocsp");
  } catch (const std::system_error& error) {
    logger.log(LogLevel::error, "ocsp",
               std::string("no thread, so no OCSP response is fetched: ") + error.what());
  }
}

void OcspRefresher::State::work() {
  std::unique_lock lock(mutex);
  while (!stopping) {
    const auto next = std::ranges::min_element(
        items, {}, [](const Items::value_type& each) { return each.second.due; });
    if (next == items.end()) {
      changed.wait(lock);
      continue;
    }
    if (next->second.due > Clock::now()) {
      const Clock::time_point due = next->second.due;  // the item may go meanwhile
      changed.wait_until(lock, due);
      continue;
    }
    const tls::OcspQuestion question = next->second.question;
    lock.unlock();
    const auto response = fetch(question, cancel);
    lock.lock();
    const auto item = items.find(key_of(question));
    if (!stopping && item != items.end()) take(item->second, response);
  }
}

void OcspRefresher::State::take(Item& item, const std::expected<tls::Der, std::string>& response) {
  const tls::UnixSeconds now = std::time(nullptr);
  if (item.staple && item.staple->next_update <= now) {
    item.staple = nullptr;
    for (const auto& slot : item.slots)
      slot->put(nullptr);
  }
  if (!response) return fail(item, response.error());
  auto answer = tls::read_ocsp_answer(*response, item.question, now);
  if (!answer) return fail(item, "its answer " + answer.error());
  succeed(item, *std::move(answer));
}

void OcspRefresher::State::succeed(Item& item, tls::OcspAnswer answer) {
  item.failures = 0;
  item.due = Clock::now() + refresh_after(timing, answer.staple, std::time(nullptr), draw());
  item.staple =
      answer.revoked ? nullptr : std::make_shared<const tls::Staple>(std::move(answer.staple));
  for (const auto& slot : item.slots)
    slot->put(item.staple);
  if (answer.revoked) {
    logger.log(LogLevel::warn, "ocsp",
               item.title + " was revoked on " + answer.revoked_on + ", says " + item.question.url +
                   "; nothing is stapled, and clients may refuse it");
  } else {
    logger.log(LogLevel::info, "ocsp",
               item.title + ": the OCSP response of " + item.question.url +
                   " is stapled, good until " + date_text(item.staple->next_update));
  }
}

void OcspRefresher::State::fail(Item& item, const std::string& why) {
  const milliseconds wait = retry_after(timing, ++item.failures, draw());
  item.due = Clock::now() + wait;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
  logger.log(LogLevel::warn, "ocsp",
             item.title + ": no OCSP response from " + item.question.url + ": " + why +
                 "; asked again in " + std::to_string(seconds) + " s, and until then " +
                 (item.staple ? "the one until " + date_text(item.staple->next_update) + " stays"
                              : "nothing is stapled"));
}

OcspRefresher::OcspRefresher(base::Logger& logger, OcspFetch fetch, OcspTiming timing)
    : state_(std::make_unique<State>(logger, std::move(fetch), timing)) {}

OcspRefresher::~OcspRefresher() {
  stop();
}

void OcspRefresher::watch(const tls::Material& material) {
  const std::lock_guard lock(state_->mutex);
  State::Items fresh;
  for (const tls::Material::Entry& entry : material.entries) {
    if (entry.credentials == nullptr) continue;
    for (const tls::Certificate& certificate : entry.credentials->certificates) {
      if (certificate.ocsp_question)
        state_->add(fresh, entry.credentials->config.name, certificate);
    }
  }
  state_->items = std::move(fresh);
  if (!state_->items.empty() && !state_->stopping && !state_->thread.joinable()) state_->start();
  state_->changed.notify_all();
}

void OcspRefresher::stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(state_->cancel, &one, sizeof one);
    state_->changed.notify_all();
  }
  if (state_->thread.joinable()) state_->thread.join();
}

}  // namespace ringside::app
