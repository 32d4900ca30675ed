#include "vmm/timeline/strategy_name.h"

namespace sipi {

std::string StrategyName(const sequence::Strategy& strategy) {
  std::string name = sequence::BaseName(strategy.id);
  if (strategy.reuse_calibration != 0) name += "+reuse";
  if (strategy.overlap != 0) name += "+overlap";
  return name;
}

}  // namespace sipi
