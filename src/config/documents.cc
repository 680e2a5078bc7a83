#include "documents.h"

#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace ringside::config {
namespace {

// Nobody writes that much; a device or a log file by mistake does.
constexpr std::size_t file_bytes_max = 16U << 20;
constexpr std::size_t files_max = 1000;

std::string canonical(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::canonical(path, error);
  return error ? path : absolute.string();
}

// The text of a file, or why it cannot be read.
std::expected<std::string, std::string> read_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return std::unexpected("it is a directory");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::unexpected(std::strerror(errno == 0 ? EIO : errno));
  std::string text;
  char buffer[16'384];
  while (file.read(buffer, sizeof buffer), file.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(file.gcount()));
    if (text.size() > file_bytes_max) return std::unexpected("it is larger than 16 MiB");
  }
  if (file.bad()) return std::unexpected(std::strerror(EIO));
  return text;
}

bool has_wildcard(std::string_view pattern) {
  return pattern.find_first_of("*?[") != std::string_view::npos;
}

std::vector<std::string> matching_files(const std::string& pattern) {
  std::vector<std::string> out;
  glob_t found{};
  if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
    out.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  // By bytes, not by the locale's collation: the order must be the same everywhere.
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

void Documents::add_file(const std::string& path) {
  names_.push_back(path);
  const auto text = read_file(path);
  if (!text) {
    incomplete_ = true;
    context_->reporter.problem({path, 0, 0}, join({"cannot be read: ", text.error()}));
    return;
  }
  open_.push_back(canonical(path));
  parse(*text, path);
  done_.push_back(open_.back());
  open_.pop_back();
}

void Documents::add_text(std::string_view text, const std::string& name) {
  names_.push_back(name);
  open_.push_back(name.starts_with('<') ? name : canonical(name));
  parse(text, name);
  open_.pop_back();
}

void Documents::parse(std::string_view text, const std::string& name) {
  toml::table root;
  try {
    root = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    incomplete_ = true;
    Place place = place_of(error.source());
    place.file = name;
    context_->reporter.problem(place, std::string(error.description()));
    return;
  }
  // An index, not a reference: including adds documents behind this one.
  const std::size_t index = documents_.size();
  documents_.push_back({name, std::move(root)});
  if (const toml::node* node = documents_[index].root.get("include")) {
    include(Value(*context_, *node, "include"), name);
  }
}

void Documents::include(const Value& value, const std::string& name) {
  for (const Value& element : value.elements()) {
    const auto pattern = element.text("a list of file names");
    if (!pattern) continue;
    if (pattern->empty() || pattern->find('\0') != std::string::npos) {
      element.complain("has no usable file name");
    } else if (name.starts_with('<')) {
      element.complain("is not possible here, since the text is in no file");
    } else {
      include_pattern(*pattern, element, name);
    }
  }
}

void Documents::include_pattern(const std::string& pattern, const Value& value,
                                const std::string& name) {
  std::string full = pattern;
  if (pattern.front() != '/') {
    full = (std::filesystem::path(name).parent_path() / pattern).string();
  }
  if (!has_wildcard(pattern)) {
    include_file(full, value);
    return;
  }
  // Nothing that matches is fine: an empty conf.d is how most installations begin.
  for (const std::string& path : matching_files(full))
    include_file(path, value);
}

void Documents::include_file(const std::string& path, const Value& value) {
  const std::string identity = canonical(path);
  if (std::find(open_.begin(), open_.end(), identity) != open_.end()) {
    value.complain(join({"goes round in a circle: ", quote(path), " is being read already"}));
    return;
  }
  if (std::find(done_.begin(), done_.end(), identity) != done_.end()) {
    value.complain(join({"names ", quote(path), ", which is included already"}));
    return;
  }
  if (names_.size() >= files_max) {
    value.complain("names more than 1000 files");
    return;
  }
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    incomplete_ = true;
    value.complain(join({"names ", quote(path), ", which does not exist"}));
    return;
  }
  add_file(path);
}

}  // namespace ringside::config
