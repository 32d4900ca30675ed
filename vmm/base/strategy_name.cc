#include "vmm/base/strategy_name.h"

#include "absl/strings/str_cat.h"

namespace sipi {

std::string StrategyName(const sequence::Strategy& strategy) {
  return absl::StrCat(sequence::BaseName(strategy.id),
                      strategy.reuse_calibration != 0 ? "+reuse" : "",
                      strategy.overlap != 0 ? "+overlap" : "");
}

}  // namespace sipi
