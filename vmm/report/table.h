// Fixed-width text tables and the numbers in them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sipi {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kRight;
};

// Columns are as wide as their widest cell and two spaces apart; the heading is underlined. Rows
// may be shorter than the heading; cells beyond it are a programming error and are dropped. Width
// counts UTF-8 code points.
class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns);
  void AddRow(std::vector<std::string> cells);
  // Ends in a newline; no line has blanks at its end.
  std::string Render() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "12.345" for 12345000 ns: milliseconds with three decimals, so that the unit stands in the
// heading. "-" for nothing.
std::string Milliseconds(std::optional<int64_t> ns);
// "12345.7": microseconds with one decimal.
std::string Microseconds(std::optional<int64_t> ns);
// "850 ns", "12.3 us", "4.56 ms", "1.23 s": three or so digits and the unit, for running text.
std::string Duration(int64_t ns);

}  // namespace sipi
