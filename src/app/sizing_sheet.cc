#include "sizing_sheet.h"

#include <algorithm>
#include <cstdio>

namespace ringside::app {
namespace {

std::string right(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string left(std::string_view text, std::size_t width) {
  std::string out(text);
  if (out.size() < width) out.append(width - out.size(), ' ');
  return out;
}

std::string row(std::string_view what, std::size_t width, const std::string& count,
                const std::string& each, const std::string& total) {
  return "  " + left(what, width) + right(count, 11) + right(each, 13) + right(total, 13) + "\n";
}

std::string limit_text(std::uint64_t limit, bool bytes) {
  if (limit == no_limit) return "unlimited";
  return bytes ? readable_bytes(limit) : std::to_string(limit);
}

}  // namespace

std::string readable_bytes(std::uint64_t bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  auto value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  const bool whole = value == static_cast<double>(static_cast<std::uint64_t>(value));
  const int decimals = whole ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0;
  std::snprintf(text, sizeof text, "%.*f %s", decimals, value, units[unit]);
  return text;
}

std::string sizing_sheet(const std::vector<proxy::SizingTerm>& terms, const Plan& plan,
                         const Limits& limits) {
  std::size_t width = 24;
  for (const proxy::SizingTerm& term : terms)
    width = std::max(width, term.what.size());

  std::string out = "Memory of one ring, at most (a page is taken when it is first used):\n";
  out += row("", width, "count", "each", "total");
  std::uint64_t sum = 0;
  for (const proxy::SizingTerm& term : terms) {
    const std::uint64_t total = term.count * term.bytes_each;
    sum += total;
    out += row(term.what, width, std::to_string(term.count), readable_bytes(term.bytes_each),
               readable_bytes(total));
  }
  out += row("one ring", width, "", "", readable_bytes(sum));
  out += row("all rings", width, std::to_string(plan.rings), readable_bytes(sum),
             readable_bytes(sum * plan.rings));

  out += "\nLimits:\n";
  out += "  client connections     " + std::to_string(plan.connections_max) + " a ring, " +
         std::to_string(std::uint64_t{plan.connections_max} * plan.rings) + " in all\n";
  out += "  descriptors            up to " + std::to_string(plan.descriptors) +
         "; RLIMIT_NOFILE is " + limit_text(limits.descriptors, false) + "\n";
  out += "  locked memory          " + readable_bytes(plan.locked_bytes) + "; RLIMIT_MEMLOCK is " +
         limit_text(limits.locked_bytes, true) + "\n";
  for (const std::string& advice : plan.advice)
    out += "\nwarning: " + advice + "\n";
  return out;
}

}  // namespace ringside::app
