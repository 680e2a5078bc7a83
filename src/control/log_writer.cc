#include "ringside/control/log_writer.h"

#include <poll.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "access_format.h"
#include "access_sink.h"
#include "escape.h"
#include "event_queue.h"
#include "log_output.h"
#include "rate_limiter.h"
#include "timestamp.h"
#include "wake_up.h"

namespace ringside::control {
namespace {

using base::LogLevel;

constexpr int busy_wait_ms = 100;
constexpr int idle_wait_ms = 1000;
constexpr int finish_poll_ms = 20;

std::uint64_t realtime_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

std::uint64_t monotonic_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

std::string_view word_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warn:
      return "warn";
    case LogLevel::error:
      return "error";
  }
  return "error";
}

LogLevel level_of(config::Log::Level level) {
  switch (level) {
    case config::Log::Level::debug:
      return LogLevel::debug;
    case config::Log::Level::info:
      return LogLevel::info;
    case config::Log::Level::warn:
      return LogLevel::warn;
    case config::Log::Level::error:
      return LogLevel::error;
  }
  return LogLevel::info;
}

std::string reason(int error) {
  return ::strerrordesc_np(error);
}

}  // namespace

struct LogWriter::Parts {
  explicit Parts(const LogWriterOptions& options)
      : format(options.log.access), events(options.event_queue_places) {}

  // The outputs: one and the same when both logs have the same place, so that no line can fall into
  // the middle of another.
  LogOutput& access_output() { return own_access_output ? *own_access_output : *event_output; }

  const std::thread::id owner = std::this_thread::get_id();
  const config::Log::Access format;
  WakeUp wake_up;
  std::unique_ptr<LogOutput> event_output;
  std::unique_ptr<LogOutput> own_access_output;
  int event_error = 0;  // of the last flush
  int access_error = 0;
  std::vector<std::unique_ptr<RingAccessSink>> sinks;
  AccessFormat access_format;
  Timestamp timestamp;
  RateLimiter limiter;
  EventQueue events;
  std::atomic<std::uint64_t> events_dropped{0};
  bool found_something = true;  // in the last flush

  void append_event(const EventQueue::Event& event);
  void append_left_out(LogLevel level, std::string_view event, std::uint32_t count);
  void settle_limiter(bool all);
  bool drain_events();
  bool drain_access();
  bool drain_sink(RingAccessSink& sink);
  void set_idle(bool idle);
  void note_write_result(LogOutput& output, int result, int& last);
  void write_out();
};

void LogWriter::Parts::append_event(const EventQueue::Event& event) {
  std::string& out = event_output->lines();
  timestamp.append_rfc3339(out, event.realtime_ns);
  out += ' ';
  out += word_of(event.level);
  out += ' ';
  append_readable(out, event.event);
  out += ' ';
  append_readable(out, event.text);
  if (event.left_out != 0) {
    out += " (";
    out += std::to_string(event.left_out);
    out += " similar lines left out)";
  }
  out += '\n';
}

void LogWriter::Parts::append_left_out(LogLevel level, std::string_view event,
                                       std::uint32_t count) {
  append_event({realtime_ns(), 0, level, event, std::to_string(count) + " similar lines left out"});
}

// Lines that were left out and that no later line of their kind has accounted for.
void LogWriter::Parts::settle_limiter(bool all) {
  limiter.settle(monotonic_ns(), all,
                 [this](LogLevel level, std::string_view event, std::uint32_t count) {
                   append_left_out(level, event, count);
                 });
}

bool LogWriter::Parts::drain_events() {
  EventQueue::Event event;
  bool any = false;
  while (event_output->has_room() && events.front(event)) {
    append_event(event);
    events.pop();
    any = true;
  }
  if (const std::uint64_t dropped = events_dropped.exchange(0, std::memory_order_relaxed)) {
    append_event({realtime_ns(), 0, LogLevel::warn, "log",
                  std::to_string(dropped) + " lines were lost: the log could not keep up"});
  }
  return any;
}

bool LogWriter::Parts::drain_sink(RingAccessSink& sink) {
  LogOutput& output = access_output();
  bool any = false;
  while (output.has_room()) {
    const proxy::AccessRecord* record = sink.front();
    if (record == nullptr) break;
    if (format == config::Log::Access::json) {
      access_format.append_json(output.lines(), *record);
    } else {
      access_format.append_combined(output.lines(), *record);
    }
    sink.pop();
    any = true;
  }
  return any;
}

bool LogWriter::Parts::drain_access() {
  bool any = false;
  std::uint64_t dropped = 0;
  for (const auto& sink : sinks) {
    any |= drain_sink(*sink);
    dropped += sink->take_dropped();
  }
  if (dropped != 0) {
    if (const auto left_out = limiter.admit(LogLevel::warn, "access-log", monotonic_ns())) {
      append_event({realtime_ns(), *left_out, LogLevel::warn, "access-log",
                    std::to_string(dropped) + " records were lost: the log could not keep up"});
    }
  }
  return any;
}

// A failing disk is told about once, not with each attempt, and so is its recovery. The line may
// go to the failing output itself; then it waits there with the others.
void LogWriter::Parts::note_write_result(LogOutput& output, int result, int& last) {
  if (result == EAGAIN || result == last) return;
  last = result;
  const std::string name = output.name();
  if (result == 0) {
    append_event({realtime_ns(), 0, LogLevel::info, "log", name + " can be written again"});
  } else {
    append_event(
        {realtime_ns(), 0, LogLevel::error, "log", name + " cannot be written: " + reason(result)});
  }
}

void LogWriter::Parts::write_out() {
  if (own_access_output) {
    note_write_result(*own_access_output, own_access_output->flush(), access_error);
  }
  const int before = event_error;
  note_write_result(*event_output, event_output->flush(), event_error);
  if (before != event_error) event_output->flush();
}

void LogWriter::Parts::set_idle(bool idle) {
  for (const auto& sink : sinks)
    sink->set_reader_idle(idle);
}

LogWriter::LogWriter(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
LogWriter::~LogWriter() = default;

std::expected<std::unique_ptr<LogWriter>, std::string> LogWriter::open(
    const LogWriterOptions& options) {
  auto parts = std::make_unique<Parts>(options);
  auto output = LogOutput::open(options.log.file);
  if (!output)
    return std::unexpected("log.file: " + options.log.file + ": " + reason(output.error()));
  parts->event_output = std::move(*output);

  if (options.log.access != config::Log::Access::off) {
    if (options.log.access_file != options.log.file) {
      auto access = LogOutput::open(options.log.access_file);
      if (!access) {
        return std::unexpected("log.access: " + options.log.access_file + ": " +
                               reason(access.error()));
      }
      parts->own_access_output = std::move(*access);
    }
    for (unsigned ring = 0; ring < options.rings; ++ring) {
      parts->sinks.push_back(
          std::make_unique<RingAccessSink>(options.access_queue_bytes, parts->wake_up));
    }
  }
  std::unique_ptr<LogWriter> writer(new LogWriter(std::move(parts)));
  writer->level_ = level_of(options.log.level);
  return writer;
}

void LogWriter::log(LogLevel level, std::string_view event, std::string_view text) {
  if (!enabled(level)) return;
  const auto left_out = parts_->limiter.admit(level, event, monotonic_ns());
  if (!left_out) return;
  const EventQueue::Event entry{realtime_ns(), *left_out, level, event, text};
  if (std::this_thread::get_id() != parts_->owner) {
    if (!parts_->events.push(entry)) {
      parts_->events_dropped.fetch_add(1, std::memory_order_relaxed);
    }
    parts_->wake_up.signal();
    return;
  }
  parts_->drain_events();
  if (parts_->event_output->has_room()) {
    parts_->append_event(entry);
  } else {
    parts_->events_dropped.fetch_add(1, std::memory_order_relaxed);
  }
  parts_->write_out();
}

proxy::AccessSink* LogWriter::access(unsigned ring) {
  return ring < parts_->sinks.size() ? parts_->sinks[ring].get() : nullptr;
}

void LogWriter::flush() {
  parts_->wake_up.clear();
  parts_->settle_limiter(false);
  bool found = parts_->drain_events();
  found |= parts_->drain_access();
  parts_->write_out();
  if (found != parts_->found_something) parts_->set_idle(!found);
  parts_->found_something = found;
}

int LogWriter::wake_descriptor() const {
  return parts_->wake_up.descriptor();
}

int LogWriter::wait_ms() const {
  const bool pending = !parts_->event_output->empty() || !parts_->access_output().empty();
  return parts_->found_something || pending ? busy_wait_ms : idle_wait_ms;
}

void LogWriter::reopen() {
  flush();
  for (LogOutput* output : {parts_->event_output.get(), parts_->own_access_output.get()}) {
    if (output == nullptr) continue;
    if (const int error = output->reopen()) {
      log(LogLevel::error, "log", output->name() + " cannot be opened again: " + reason(error));
    }
  }
}

bool LogWriter::finish(unsigned timeout_ms) {
  const std::uint64_t deadline_ns = monotonic_ns() + timeout_ms * std::uint64_t{1'000'000};
  parts_->settle_limiter(true);
  for (;;) {
    flush();
    LogOutput& access = parts_->access_output();
    LogOutput& waiting = parts_->event_output->empty() ? access : *parts_->event_output;
    if (waiting.empty() && !parts_->found_something) return true;
    const std::uint64_t now = monotonic_ns();
    if (now >= deadline_ns) return false;
    if (waiting.empty()) continue;
    // A full disk counts as writable, so there only time can help.
    pollfd entry{.fd = waiting.descriptor(), .events = POLLOUT, .revents = 0};
    const bool failing = parts_->event_error != 0 || parts_->access_error != 0;
    ::poll(&entry, failing ? 0 : 1, finish_poll_ms);
  }
}

}  // namespace ringside::control
