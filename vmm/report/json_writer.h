// Writes JSON text straight into a string, without a tree in between: a timeline has hundreds of
// thousands of values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sipi {

// Puts the commas; the caller keeps begins and ends paired and writes a key before each value of an
// object. Strings are escaped; bytes that are no UTF-8 become U+FFFD, so the text is valid whatever
// comes in.
class JsonWriter {
 public:
  void BeginObject() { Open('{'); }
  void EndObject() { Close('}'); }
  void BeginArray() { Open('['); }
  void EndArray() { Close(']'); }
  void Key(std::string_view key);
  void String(std::string_view value);
  void Int(int64_t value);
  void UInt(uint64_t value);
  void Bool(bool value);
  void Null();
  // Six significant digits; null if not finite.
  void Double(double value);
  // Nanoseconds as microseconds with three decimals: exact.
  void Microseconds(int64_t ns);
  void OptionalInt(std::optional<int64_t> value);

  // Key and value in one.
  void Field(std::string_view key, std::string_view value);
  void Field(std::string_view key, const char* value) { Field(key, std::string_view(value)); }
  void Field(std::string_view key, int64_t value);
  void Field(std::string_view key, int32_t value) { Field(key, int64_t{value}); }
  void Field(std::string_view key, uint64_t value);
  void Field(std::string_view key, uint32_t value) { Field(key, uint64_t{value}); }
  void Field(std::string_view key, bool value);
  void Field(std::string_view key, std::optional<int64_t> value);

  // Members of an object that are JSON already, as "\"a\":1,\"b\":2"; nothing if empty.
  void RawMembers(std::string_view members);

  // A line break before the next value, so that people and diff can read the file.
  void Line() { break_line_ = true; }

  // Ends the text with a newline and hands it over.
  std::string Take();

 private:
  void Open(char bracket);
  void Close(char bracket);
  void Separate();
  void AppendQuoted(std::string_view value);

  std::string out_;
  bool need_comma_ = false;
  bool break_line_ = false;
};

}  // namespace sipi
