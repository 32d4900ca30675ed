#include "vmm/report/table.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_format.h"

namespace sipi {
namespace {

constexpr size_t kGap = 2;

size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // not a UTF-8 continuation byte
  }));
}

std::string Padded(const std::string& text, size_t width, Align align) {
  const std::string blanks(width - std::min(width, Width(text)), ' ');
  return align == Align::kLeft ? text + blanks : blanks + text;
}

void AppendLine(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line;
  out += '\n';
}

}  // namespace

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

void TextTable::AddRow(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::Render() const {
  std::vector<size_t> widths;
  for (const Column& column : columns_) widths.push_back(Width(column.title));
  for (const auto& row : rows_) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  const auto line = [&](auto cell_of) {
    std::string text;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) text.append(kGap, ' ');
      text += Padded(cell_of(i), widths[i], columns_[i].align);
    }
    return text;
  };
  std::string out;
  AppendLine(out, line([this](size_t i) { return columns_[i].title; }));
  AppendLine(out, line([&widths](size_t i) { return std::string(widths[i], '-'); }));
  for (const auto& row : rows_) AppendLine(out, line([&row](size_t i) { return row[i]; }));
  return out;
}

std::string Milliseconds(std::optional<int64_t> ns) {
  if (!ns.has_value()) return "-";
  return absl::StrFormat("%.3f", static_cast<double>(*ns) / 1e6);
}

std::string Microseconds(std::optional<int64_t> ns) {
  if (!ns.has_value()) return "-";
  return absl::StrFormat("%.1f", static_cast<double>(*ns) / 1e3);
}

std::string Duration(int64_t ns) {
  const auto value = static_cast<double>(ns);
  const double size = std::abs(value);
  if (size < 1e3) return absl::StrFormat("%d ns", ns);
  if (size < 1e6) return absl::StrFormat("%.1f us", value / 1e3);
  if (size < 1e9) return absl::StrFormat("%.2f ms", value / 1e6);
  return absl::StrFormat("%.2f s", value / 1e9);
}

}  // namespace sipi
