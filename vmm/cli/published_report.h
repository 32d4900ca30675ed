// What `sipi bench published` shows: each published figure beside the simulated one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sipi {

// A bring-up, or a switch of SMT.
struct PublishedResult {
  std::string profile;
  std::string what;           // strategy; "off" or "on"
  std::string grace_periods;  // of a switch: "normal" or "expedited"
  int64_t published_ns = 0;
  int64_t simulated_ns = 0;
  bool fitted = false;  // published_rows.h
};

struct PublishedResults {
  uint32_t runs = 0;  // seeds of each bring-up
  std::vector<PublishedResult> bring_up;
  std::vector<PublishedResult> smt;
};

// Two tables, and what is in them.
std::string PublishedText(const PublishedResults& results);

// sipi.published/1 (docs/formats.md).
std::string PublishedJson(const PublishedResults& results);

}  // namespace sipi
