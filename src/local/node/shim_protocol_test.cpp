#include "local/node/shim_protocol.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace grapnel::local::shim {
namespace {

TEST(ShimProtocol, ReadsWhatWasWritten) {
  std::string bytes;
  Writer writer(bytes);
  writer.message(Message::kStop);
  writer.text(Field::kContainer, "main");
  writer.number(Field::kGrace, 30000);
  writer.text(Field::kError, "");

  Reader reader(bytes);
  EXPECT_EQ(reader.message(), Message::kStop);
  FieldValue value;
  ASSERT_TRUE(reader.next(value));
  EXPECT_EQ(value.field, Field::kContainer);
  EXPECT_EQ(value.text, "main");
  EXPECT_EQ(value.text.data()[4], '\0');
  ASSERT_TRUE(reader.next(value));
  EXPECT_EQ(value.number(), 30000U);
  ASSERT_TRUE(reader.next(value));
  EXPECT_EQ(value.text, "");
  EXPECT_FALSE(reader.next(value));
}

TEST(ShimProtocol, StopsWhereBytesAreCutShort) {
  std::string bytes;
  Writer writer(bytes);
  writer.message(Message::kStop);
  writer.text(Field::kContainer, "main");
  for (size_t size = 0; size < bytes.size(); ++size) {
    Reader reader(std::string_view(bytes).substr(0, size));
    reader.message();
    FieldValue value;
    EXPECT_FALSE(reader.next(value)) << size;
  }
}

TEST(ShimProtocol, AnyBytesAreSafeToRead) {
  EXPECT_TRUE(rc::check([](const std::vector<uint8_t>& noise) {
    // Exactly as long as it says, so that a step too far is seen.
    const std::vector<char> exact(noise.begin(), noise.end());
    Reader reader({exact.data(), exact.size()});
    reader.message();
    FieldValue value;
    size_t total = 0;
    while (reader.next(value)) total += value.text.size() + 7;
    RC_ASSERT(total <= exact.size());
  }));
}

}  // namespace
}  // namespace grapnel::local::shim
