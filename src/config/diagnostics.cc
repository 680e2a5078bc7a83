#include "diagnostics.h"

#include <algorithm>

#include "ringside/base/text.h"

namespace ringside::config {
namespace {

// Longer words are not compared: the distance is quadratic, and nobody misspells that.
constexpr std::size_t word_bytes_max = 64;
constexpr std::size_t quoted_bytes_max = 80;

// Optimal string alignment: insert, delete, replace, or swap two neighbours, each at cost 1.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const char x = base::to_lower(a[i - 1]);
      const char y = base::to_lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (x == y ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && x == base::to_lower(b[j - 2]) && base::to_lower(a[i - 2]) == y;
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

void sort_by_place(std::vector<Problem>& problems, const std::vector<std::string>& file_order) {
  auto rank = [&](const Problem& problem) {
    return std::find(file_order.begin(), file_order.end(), problem.file) - file_order.begin();
  };
  std::stable_sort(problems.begin(), problems.end(), [&](const Problem& a, const Problem& b) {
    const auto rank_a = rank(a);
    const auto rank_b = rank(b);
    if (rank_a != rank_b) return rank_a < rank_b;
    return a.line != b.line ? a.line < b.line : a.column < b.column;
  });
}

}  // namespace

Place place_of(const toml::source_region& region) {
  return {region.path ? *region.path : std::string(), region.begin.line, region.begin.column};
}

std::string short_text(const Place& place) {
  return join({place.file, ":", std::to_string(place.line)});
}

void Reporter::problem(const Place& place, std::string message, std::string suggestion) {
  problems_.push_back(
      {place.file, place.line, place.column, std::move(message), std::move(suggestion)});
}

void Reporter::warning(const Place& place, std::string message, std::string suggestion) {
  warnings_.push_back(
      {place.file, place.line, place.column, std::move(message), std::move(suggestion)});
}

void Reporter::move_into(Loaded& loaded, const std::vector<std::string>& file_order) {
  sort_by_place(problems_, file_order);
  sort_by_place(warnings_, file_order);
  loaded.problems = std::move(problems_);
  loaded.warnings = std::move(warnings_);
}

std::string join(std::initializer_list<std::string_view> parts) {
  std::size_t bytes = 0;
  for (std::string_view part : parts)
    bytes += part.size();
  std::string out;
  out.reserve(bytes);
  for (std::string_view part : parts)
    out += part;
  return out;
}

std::string quote(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text.substr(0, quoted_bytes_max)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      out += c;
      continue;
    }
    out += "\\x";
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  if (text.size() > quoted_bytes_max) out += "...";
  return out + '"';
}

std::string quote_list(std::span<const std::string_view> words) {
  std::string out;
  for (std::string_view word : words) {
    if (!out.empty()) out += ", ";
    out += quote(word);
  }
  return out;
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  if (word.size() > word_bytes_max) return best;
  // One is the beginning of the other: "warning" for "warn", "header" for "header_bytes".
  for (std::string_view candidate : candidates) {
    const std::size_t bytes = std::min(word.size(), candidate.size());
    if (bytes < 3 || !base::equals_ignore_case(word.substr(0, bytes), candidate.substr(0, bytes))) {
      continue;
    }
    if (candidate.size() > best.size()) best = candidate;
  }
  if (!best.empty()) return best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (std::string_view candidate : candidates) {
    if (candidate.size() > word_bytes_max) continue;
    const std::size_t distance = edit_distance(word, candidate);
    // A distance as long as the word itself says nothing ("a" for "b").
    if (distance >= std::min(best_distance, candidate.size())) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

std::string suggest(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string_view near = nearest(word, candidates);
  if (!near.empty()) return join({"did you mean ", quote(near), "?"});
  if (candidates.empty() || candidates.size() > 24) return {};
  return join({candidates.size() == 1 ? "only " : "one of ", quote_list(candidates)});
}

std::string to_string(const Problem& problem) {
  std::string out = problem.file;
  if (problem.line != 0) {
    out += ':' + std::to_string(problem.line);
    out += ':' + std::to_string(problem.column);
  }
  out += ": " + problem.message;
  if (!problem.suggestion.empty()) out += " (" + problem.suggestion + ')';
  return out;
}

}  // namespace ringside::config
