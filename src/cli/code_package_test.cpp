#include "cli/code_package.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <fstream>

namespace grapnel::cli {
namespace {

namespace fs = std::filesystem;

struct CodePackage : testing::Test {
  fs::path folder = fs::path(testing::TempDir()) / fmt::format("grapnel_code_{}", ::getpid());
  CodePackage() { fs::create_directories(folder); }
  ~CodePackage() override { fs::remove_all(folder); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((folder / path).parent_path());
    std::ofstream(folder / path) << text;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    const auto files = code_files(folder);
    EXPECT_TRUE(files);
    for (const auto& file : *files) out.push_back(file.path);
    return out;
  }
  Result<std::string> pack() const {
    boost::asio::io_context loop;
    Result<std::string> out = fail(Reason::kUnknown, "still waiting");
    auto task = spawn(loop.get_executor(), [](fs::path f, Result<std::string>& o) -> Task<> {
      o = co_await pack_code(std::move(f));
    }(folder, out));
    loop.run_for(seconds(30));
    return out;
  }
};

TEST_F(CodePackage, HasAllButWhatIsLeftOut) {
  write("main.py", "x");
  write("pkg/a.py", "x");
  write("pkg/__pycache__/a.pyc", "x");
  write(".git/HEAD", "x");
  write("data/big.bin", "x");
  write("logs/a.log", "x");
  write("logs/keep.log", "x");
  write(".gitignore", "/data\n*.log\n");
  write("logs/.grapnelignore", "!keep.log\n");
  EXPECT_EQ(names(), (std::vector<std::string>{".gitignore", "logs/.grapnelignore", "logs/keep.log",
                                               "main.py", "pkg/a.py"}));
}

TEST_F(CodePackage, TheSameFilesGiveTheSameBytes) {
  write("main.py", "print(1)");
  write("-odd name", "x");
  const auto first = pack();
  ASSERT_TRUE(first) << first.error().message;
  fs::last_write_time(folder / "main.py", fs::file_time_type::clock::now() - hours(1));
  EXPECT_EQ(*pack(), *first);
  write("main.py", "print(2)");
  EXPECT_NE(*pack(), *first);
}

TEST_F(CodePackage, OneThatIsTooLargeNamesTheLargestFiles) {
  std::string noise;
  for (uint32_t i = 0, x = 1; i < (3U << 20); ++i) {
    x = x * 1664525 + 1013904223;
    noise += static_cast<char>(x >> 24);
  }
  write("weights.bin", noise);
  write("main.py", "x");
  const auto packed = pack();
  ASSERT_FALSE(packed);
  const std::string& words = packed.error().message;
  EXPECT_NE(words.find("where a ConfigMap holds 1.0 MiB"), std::string::npos) << words;
  EXPECT_NE(words.find("   3.0 MiB  weights.bin\n     1 bytes  main.py"), std::string::npos)
      << words;
}

TEST_F(CodePackage, AnEmptyFolderIsAnError) {
  EXPECT_FALSE(pack());
}

}  // namespace
}  // namespace grapnel::cli
