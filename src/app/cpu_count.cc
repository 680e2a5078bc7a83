#include "cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace ringside::app {
namespace {

struct Hierarchy {
  bool unified = false;  // cgroup v2
  std::string group;     // "/a/b", as this process sees it
};

// Lines of /proc/self/cgroup: "0::/group" (v2) and "4:cpu,cpuacct:/group" (v1).
std::vector<Hierarchy> read_hierarchies(const std::string& root) {
  std::vector<Hierarchy> found;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controllers == ",,") found.push_back({true, line.substr(second + 1)});
    if (controllers.find(",cpu,") != std::string::npos) {
      found.push_back({false, line.substr(second + 1)});
    }
  }
  return found;
}

struct Mount {
  std::string point;    // where it is
  std::string subtree;  // which group of the hierarchy its root is
};

// The mount of the v2 hierarchy, or of v1's cpu controller (mountinfo of proc(5)).
std::optional<Mount> find_mount(const std::string& root, bool unified) {
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line.substr(0, dash));
    std::istringstream after(line.substr(dash + 3));
    std::string id, parent, device, subtree, point, type, source, options;
    before >> id >> parent >> device >> subtree >> point;
    after >> type >> source >> options;
    if (unified && type == "cgroup2") return Mount{point, subtree};
    if (!unified && type == "cgroup" && ("," + options + ",").find(",cpu,") != std::string::npos) {
      return Mount{point, subtree};
    }
  }
  return std::nullopt;
}

double quota_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 0;
  double value = 0;
  std::istringstream(quota) >> value;
  return value / period;
}

double quota_v1(const std::string& folder) {
  double quota = 0;
  double period = 0;
  std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
  std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  return quota > 0 && period > 0 ? quota / period : 0;
}

// The group's path below the mount. Inside a container the mount often shows a subtree only, and
// the group may even lie outside of it ("/../other"); then the mount's own root is what is known.
std::string path_in_mount(const Mount& mount, const std::string& group) {
  if (group.find("/..") != std::string::npos) return "";
  if (mount.subtree == "/") return group == "/" ? "" : group;
  if (group == mount.subtree) return "";
  if (group.starts_with(mount.subtree + "/")) return group.substr(mount.subtree.size());
  return "";
}

// The tightest quota from the group up to the mount's root; 0: none.
double tightest(const std::string& root, const Hierarchy& hierarchy) {
  const auto mount = find_mount(root, hierarchy.unified);
  if (!mount) return 0;
  double result = 0;
  for (std::string path = path_in_mount(*mount, hierarchy.group);;) {
    std::string folder = root;
    folder.append(mount->point).append(path);
    const double quota = hierarchy.unified ? quota_v2(folder) : quota_v1(folder);
    if (quota > 0 && (result == 0 || quota < result)) result = quota;
    if (path.empty()) return result;
    path.erase(path.rfind('/'));
  }
}

}  // namespace

unsigned affinity_cpus() {
  // The mask's size is not known beforehand on machines with very many processors.
  for (std::size_t cpus = CPU_SETSIZE; cpus <= CPU_SETSIZE * 64; cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (set == nullptr) return 1;
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    const bool known = ::sched_getaffinity(0, bytes, set) == 0;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return static_cast<unsigned>(std::max(count, 1));
  }
  return 1;
}

unsigned quota_cpus(const std::string& root) {
  double result = 0;
  for (const Hierarchy& hierarchy : read_hierarchies(root)) {
    const double quota = tightest(root, hierarchy);
    if (quota > 0 && (result == 0 || quota < result)) result = quota;
  }
  return result == 0 ? 0
                     : static_cast<unsigned>(std::max(1.0, std::ceil(std::min(result, 65536.0))));
}

unsigned auto_rings() {
  const unsigned quota = quota_cpus();
  const unsigned affinity = affinity_cpus();
  return quota == 0 ? affinity : std::min(quota, affinity);
}

}  // namespace ringside::app
