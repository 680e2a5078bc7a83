#include "ringside/config/load.h"

#include <cstdlib>

#include "documents.h"
#include "readers.h"

namespace ringside::config {
namespace {

std::optional<std::string> process_environment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

void read_sites(Context& context, const std::vector<const toml::table*>& roots, Draft& draft) {
  for (const toml::table* root : roots) {
    const toml::node* node = root->get("site");
    if (node == nullptr) continue;
    if (!node->is_array()) {
      Value(context, *node, "site").complain_type("a list of tables, [[site]]");
      continue;
    }
    for (const Value& element : Value(context, *node, "site").elements()) {
      if (!element.is_table()) {
        element.complain_type("a list of tables, [[site]]");
        continue;
      }
      Section section = element.section("[[site]]");
      read_site(section, draft);
    }
  }
}

void check_watermark(Context& context, Section& limits_section, const Snapshot& snapshot) {
  if (snapshot.limits.buffered_bytes_max >= snapshot.server.buffer_bytes) return;
  const std::string message =
      join({"buffered_bytes (", std::to_string(snapshot.limits.buffered_bytes_max),
            ") must hold at least one receive buffer (buffer_bytes, ",
            std::to_string(snapshot.server.buffer_bytes), ")"});
  const auto value = limits_section.take("buffered_bytes");
  context.reporter.problem(value ? value->place() : Place{snapshot.file, 0, 0}, message);
}

void read_all(Context& context, const Documents& documents, Snapshot& snapshot) {
  std::vector<const toml::table*> roots;
  for (const Document& document : documents.all())
    roots.push_back(&document.root);
  Section root(context, "the configuration", roots);
  root.allow("include");
  root.allow("site");
  Draft draft{context, snapshot, {}, {}, {}, {}};

  Section server = root.sub("server", "[server]");
  Section timeouts = root.sub("timeouts", "[timeouts]");
  Section limits = root.sub("limits", "[limits]");
  Section log = root.sub("log", "[log]");
  Section forwarding = root.sub("forwarding", "[forwarding]");
  Section listens = root.sub("listen", "[listen]");
  Section tls = root.sub("tls", "[tls]");
  Section upstreams = root.sub("upstream", "[upstream]");
  root.finish();

  read_server(server, snapshot.server);
  read_timeouts(timeouts, snapshot.timeouts);
  read_limits(limits, snapshot.limits);
  check_watermark(context, limits, snapshot);
  read_log(log, snapshot.log);
  read_forwarding(forwarding, snapshot.forwarding);
  read_tls_entries(tls, draft);
  read_listens(listens, draft);
  read_upstreams(upstreams, draft);
  read_sites(context, roots, draft);
  // What a file that could not be read would have held is not missing.
  if (!documents.incomplete()) check_whole(draft);
}

template <typename Add>
Loaded load(const std::string& name, const Environment& environment, Add add) {
  const Environment lookup = environment ? environment : Environment(process_environment);
  Reporter reporter;
  Context context{reporter, lookup};
  Documents documents(context);
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->file = name;
  add(documents);
  read_all(context, documents, *snapshot);
  Loaded loaded;
  if (!reporter.failed()) loaded.snapshot = std::move(snapshot);
  reporter.move_into(loaded, documents.names());
  return loaded;
}

}  // namespace

Loaded load_file(const std::string& path, const Environment& environment) {
  return load(path, environment, [&](Documents& documents) { documents.add_file(path); });
}

Loaded load_text(std::string_view text, const std::string& name, const Environment& environment) {
  return load(name, environment, [&](Documents& documents) { documents.add_text(text, name); });
}

}  // namespace ringside::config
