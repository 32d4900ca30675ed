// "Did you mean ...?": the known name that is nearest to what was typed.
#pragma once

#include <string>
#include <vector>

namespace sipi {

// The name with the smallest edit distance to `given`, if it is near enough to be a slip (at most a
// third of the letters, or one begins with the other); else empty. Ties go to the first. Any
// thread.
std::string NearestName(const std::string& given, const std::vector<std::string>& names);

// "; did you mean 'x'?" or "".
std::string DidYouMean(const std::string& given, const std::vector<std::string>& names);

}  // namespace sipi
