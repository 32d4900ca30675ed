#include "vmm/report/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <utility>

namespace sipi {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool IsContinuation(std::string_view text, size_t at) {
  return at < text.size() && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80;
}

// Bytes of the UTF-8 sequence at `at`, or 0 if there is none that is valid (Unicode 15, table 3-7:
// no overlong forms, no surrogates, nothing above U+10FFFF).
size_t Utf8Length(std::string_view text, size_t at) {
  const auto lead = static_cast<uint8_t>(text[at]);
  if (lead < 0x80) return 1;
  if (!IsContinuation(text, at + 1)) return 0;
  const auto second = static_cast<uint8_t>(text[at + 1]);
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (!IsContinuation(text, at + 2)) return 0;
  if (lead == 0xE0) return second >= 0xA0 ? 3 : 0;
  if (lead == 0xED) return second <= 0x9F ? 3 : 0;
  if (lead > 0xE0 && lead <= 0xEF) return 3;
  if (!IsContinuation(text, at + 3)) return 0;
  if (lead == 0xF0) return second >= 0x90 ? 4 : 0;
  if (lead == 0xF4) return second <= 0x8F ? 4 : 0;
  return lead > 0xF0 && lead < 0xF4 ? 4 : 0;
}

template <class T>
void AppendNumber(std::string& out, T value) {
  std::array<char, 24> text;
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  out.append(text.data(), end);
}

void AppendControl(std::string& out, char c) {
  switch (c) {
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\r':
      out += "\\r";
      return;
    default:
      break;
  }
  std::array<char, 8> text;
  std::snprintf(text.data(), text.size(), "\\u%04x", static_cast<unsigned>(c));
  out += text.data();
}

}  // namespace

void JsonWriter::AppendQuoted(std::string_view value) {
  out_ += '"';
  for (size_t i = 0; i < value.size();) {
    const char c = value[i];
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += c;
      ++i;
    } else if (static_cast<uint8_t>(c) < 0x20) {
      AppendControl(out_, c);
      ++i;
    } else if (const size_t length = Utf8Length(value, i); length > 0) {
      out_.append(value, i, length);
      i += length;
    } else {
      out_ += kReplacement;
      ++i;
    }
  }
  out_ += '"';
}

void JsonWriter::Separate() {
  if (need_comma_) out_ += ',';
  if (break_line_) out_ += '\n';
  break_line_ = false;
  need_comma_ = true;
}

void JsonWriter::Open(char bracket) {
  Separate();
  out_ += bracket;
  need_comma_ = false;
}

void JsonWriter::Close(char bracket) {
  if (break_line_) out_ += '\n';
  break_line_ = false;
  out_ += bracket;
  need_comma_ = true;
}

void JsonWriter::Key(std::string_view key) {
  Separate();
  AppendQuoted(key);
  out_ += ':';
  need_comma_ = false;
}

void JsonWriter::String(std::string_view value) {
  Separate();
  AppendQuoted(value);
}

void JsonWriter::Int(int64_t value) {
  Separate();
  AppendNumber(out_, value);
}

void JsonWriter::UInt(uint64_t value) {
  Separate();
  AppendNumber(out_, value);
}

void JsonWriter::Bool(bool value) {
  Separate();
  out_ += value ? "true" : "false";
}

void JsonWriter::Null() {
  Separate();
  out_ += "null";
}

void JsonWriter::Double(double value) {
  if (!std::isfinite(value)) return Null();
  Separate();
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), "%.6g", value);
  out_ += text.data();
}

void JsonWriter::Microseconds(int64_t ns) {
  Separate();
  if (ns < 0) out_ += '-';
  const uint64_t size = ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  AppendNumber(out_, size / 1000);
  out_ += '.';
  const uint64_t fraction = size % 1000;
  out_ += static_cast<char>('0' + fraction / 100);
  out_ += static_cast<char>('0' + fraction / 10 % 10);
  out_ += static_cast<char>('0' + fraction % 10);
}

void JsonWriter::OptionalInt(std::optional<int64_t> value) {
  if (value.has_value()) {
    Int(*value);
  } else {
    Null();
  }
}

void JsonWriter::Field(std::string_view key, std::string_view value) {
  Key(key);
  String(value);
}

void JsonWriter::Field(std::string_view key, int64_t value) {
  Key(key);
  Int(value);
}

void JsonWriter::Field(std::string_view key, uint64_t value) {
  Key(key);
  UInt(value);
}

void JsonWriter::Field(std::string_view key, bool value) {
  Key(key);
  Bool(value);
}

void JsonWriter::Field(std::string_view key, std::optional<int64_t> value) {
  Key(key);
  OptionalInt(value);
}

void JsonWriter::RawMembers(std::string_view members) {
  if (members.empty()) return;
  Separate();
  out_ += members;
}

std::string JsonWriter::Take() {
  out_ += '\n';
  return std::move(out_);
}

}  // namespace sipi
