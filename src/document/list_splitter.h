// Takes a Kubernetes list apart while it arrives: each element of its top-level "items" is handed
// out as one text, so that a list of 100 MB is never held whole.
//
//   ListSplitter splitter([&](std::string_view item) { return decode(item); });
//   while (auto chunk = co_await body.read()) if (auto r = splitter.feed(*chunk); !r) …
//   auto list = splitter.finish();  // {"kind": "PodList", "metadata": {…}, "items": []}
//
// Only the frame is checked here. What is inside an item is for the parser that reads it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "document/json.h"

namespace grapnel {

struct ListSplitterOptions {
  size_t max_item = size_t{64} << 20;
  size_t max_skeleton = size_t{1} << 20;  // all that is not in items
};

class ListSplitter {
 public:
  // The text is valid during the call only. An error it returns ends the splitting.
  using OnItem = std::function<Result<>(std::string_view item)>;

  explicit ListSplitter(OnItem on_item, ListSplitterOptions options = {});

  // After an error there is no going on: every later call gives the same error.
  Result<> feed(std::string_view chunk);
  // The list without its items; an error when the text was not whole.
  Result<Json> finish();

 private:
  // Where the next byte belongs.
  enum class Place {
    kStart,      // before the list's {
    kOutside,    // in the list, not in its items
    kItemsKey,   // after "items", before its value
    kFirstItem,  // after [, before an item or ]
    kInItem,
    kAfterItem,  // before , or ]
    kNextItem,   // after a comma
    kEnd,        // after the list's }
  };

  Result<> take(std::string_view chunk);
  Result<> take_outside(char c);
  Result<> take_between_items(char c);
  Result<size_t> take_item(std::string_view rest);
  uint64_t escaped_in(const char* block);
  bool skip_block(const char* block);
  size_t item_end(std::string_view rest);
  bool follow_string(char c);
  Failure unexpected(char c) const;

  OnItem on_item_;
  ListSplitterOptions options_;
  Place place_ = Place::kStart;
  bool in_string_ = false;
  bool escaped_ = false;
  int depth_ = 0;         // in the list: 1 is a member of its own; in an item: from 0
  size_t key_start_ = 0;  // of the last string outside of the items, in skeleton_
  bool seen_items_ = false;
  bool last_was_string_ = false;
  std::string skeleton_;
  std::string item_;  // the begin of an item whose end has not come yet
  size_t offset_ = 0;
  std::optional<Error> error_;
};

}  // namespace grapnel
