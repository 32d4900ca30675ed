// The rules of the tree that no compiler checks. Each takes text and returns what is wrong with it,
// so that the rules themselves can be tested.
#pragma once

#include <string>
#include <vector>

namespace sipi::tidy {

struct SourceFile {
  std::string path;  // from the root of the tree, with '/'
  std::vector<std::string> lines;
};

// One line per finding: "path:line: what".
using Findings = std::vector<std::string>;

// At most 100 columns (code points).
Findings CheckColumns(const SourceFile& file);
// At most 400 lines.
Findings CheckFileLength(const SourceFile& file);
// No function body over 70 lines, told by the braces' indentation that clang-format gives.
Findings CheckFunctionLength(const SourceFile& file);
// Each folder includes only what docs/architecture.md lets it; apic and the guest's kernel know no
// threads and no clocks.
Findings CheckIncludes(const SourceFile& file);
// No wait without a deadline in the guest's kernel and scenarios: every wait goes through SpinUntil
// or Halt.
Findings CheckWaits(const SourceFile& file);
// The simulator knows no host clock, no floating point, no order of hashes, no chance but its own.
Findings CheckDeterminism(const SourceFile& file);
// The build picks the platform, not the preprocessor: no conditional compilation in the guest, none
// by platform elsewhere. Nor by the compiler's sanitizers, of which each compiler tells in its own
// way: the product's meson.build files know of them, tests have tests/support/sanitized.h.
Findings CheckConditionals(const SourceFile& file);
// Nothing is left for later in the text.
Findings CheckLeftovers(const SourceFile& file);
// Names of keys and counters that the file writes into JSON, each in code marks in `formats_text`
// (docs/formats.md). A counter `exits.x` may also stand there as `exits.*`.
Findings CheckFormats(const SourceFile& file, const std::string& formats_text);
// Headers are protected by #pragma once.
Findings CheckHeader(const SourceFile& file);
// `meson_text` is that of the meson.build files in the source's folder and the folders above it.
Findings CheckBuilt(const SourceFile& file, const std::string& meson_text);

}  // namespace sipi::tidy
