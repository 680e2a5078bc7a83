#include "cpu_count.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>

namespace ringside::app {
namespace {

class QuotaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "ringside-cpu-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ + path).substr(0, (root_ + path).rfind('/')));
    std::ofstream(root_ + path) << text;
  }
  // A v2 hierarchy of which `subtree` is mounted at /sys/fs/cgroup.
  void unified(const std::string& group, const std::string& subtree = "/") {
    put("/proc/self/cgroup", "0::" + group + "\n");
    put("/proc/self/mountinfo",
        "22 1 0:5 / /proc rw - proc proc rw\n"
        "30 23 0:26 " +
            subtree + " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  }

  std::string root_;
};

TEST_F(QuotaTest, IsNoneWithoutControlGroups) {
  EXPECT_EQ(quota_cpus(root_), 0U);
}

TEST_F(QuotaTest, IsNoneWithoutALimit) {
  unified("/");
  put("/sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(quota_cpus(root_), 0U);
}

TEST_F(QuotaTest, RoundsUp) {
  unified("/");
  for (const auto& [text, cpus] :
       {std::pair{"200000 100000\n", 2U}, std::pair{"150000 100000\n", 2U},
        std::pair{"50000 100000\n", 1U}, std::pair{"1000 100000\n", 1U},
        std::pair{"200001 100000\n", 3U}, std::pair{"5000 2500\n", 2U}}) {
    put("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(quota_cpus(root_), cpus) << text;
  }
}

TEST_F(QuotaTest, TakesTheTightestLevelUpToTheRoot) {
  unified("/system.slice/ringside.service");
  put("/sys/fs/cgroup/system.slice/cpu.max", "300000 100000\n");
  put("/sys/fs/cgroup/system.slice/ringside.service/cpu.max", "max 100000\n");
  EXPECT_EQ(quota_cpus(root_), 3U);
  put("/sys/fs/cgroup/system.slice/ringside.service/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota_cpus(root_), 2U);
  put("/sys/fs/cgroup/system.slice/cpu.max", "100000 100000\n");
  EXPECT_EQ(quota_cpus(root_), 1U);
  put("/sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(quota_cpus(root_), 1U);
}

TEST_F(QuotaTest, FindsItsGroupInAMountedSubtree) {
  unified("/docker/abc/inner", "/docker/abc");
  put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  put("/sys/fs/cgroup/inner/cpu.max", "300000 100000\n");
  EXPECT_EQ(quota_cpus(root_), 3U);
  unified("/docker/abc", "/docker/abc");
  EXPECT_EQ(quota_cpus(root_), 4U);
  unified("/docker/abcdef", "/docker/abc");  // a neighbour, not below it
  EXPECT_EQ(quota_cpus(root_), 4U);
}

TEST_F(QuotaTest, FallsBackToTheMountForAGroupOutsideOfIt) {
  unified("/../other", "/");
  put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota_cpus(root_), 2U);
}

TEST_F(QuotaTest, ReadsTheOlderHierarchy) {
  put("/proc/self/cgroup", "5:memory:/app\n4:cpu,cpuacct:/app\n0::/\n");
  put("/proc/self/mountinfo",
      "31 30 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
      "33 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:5 - cgroup cgroup rw,cpu,cpuacct\n");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  put("/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "250000\n");
  put("/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota_cpus(root_), 3U);
  put("/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(quota_cpus(root_), 0U);
}

TEST_F(QuotaTest, TakesNoHarmFromNonsense) {
  unified("/");
  for (const char* text : {"", "x y\n", "100000\n", "100000 0\n", "-5 100000\n", "\n\n"}) {
    put("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(quota_cpus(root_), 0U) << text;
  }
  put("/proc/self/cgroup", "nonsense\n0:\n");
  EXPECT_EQ(quota_cpus(root_), 0U);
}

TEST(AffinityCpus, FollowsTheMask) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(affinity_cpus(), static_cast<unsigned>(CPU_COUNT(&before)));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &before)) continue;
    CPU_SET(cpu, &one);
    break;
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(affinity_cpus(), 1U);
  EXPECT_EQ(auto_rings(), 1U);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace ringside::app
