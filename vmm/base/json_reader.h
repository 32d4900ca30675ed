// Typed reading of a parsed JSON object, with errors that name the place.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace sipi {

// Reads fields of one object. The first error stays; later reads do nothing, so a caller asks once
// at the end.
class ObjectReader {
 public:
  // `where` names the object in errors, e.g. "run.json: events[3]". Both must outlive the reader.
  ObjectReader(const nlohmann::json& object, std::string where)
      : object_(object), where_(std::move(where)) {
    if (!object.is_object()) Fail("is no object");
  }

  // A required field.
  template <class T>
  void Read(const char* key, T& out) {
    if (const nlohmann::json* value = Find(key)) Convert(key, *value, out);
  }

  // A required whole number from `min` to `max`.
  template <class T>
  void ReadWithin(const char* key, T& out, T min, T max) {
    if (const nlohmann::json* value = Find(key)) ConvertWithin(key, *value, out, min, max);
  }

  // A field that may be missing; `out` keeps its value then.
  template <class T>
  void ReadOptional(const char* key, T& out) {
    if (status_.ok() && object_.contains(key)) Read(key, out);
  }

  // A required field that may be null: `out` holds nothing then.
  template <class T>
  void ReadNullable(const char* key, std::optional<T>& out) {
    out.reset();
    const nlohmann::json* value = Find(key);
    if (value == nullptr || value->is_null()) return;
    T read{};
    Convert(key, *value, read);
    if (status_.ok()) out = std::move(read);
  }

  // A required field of any type; null after an error.
  const nlohmann::json* Find(const char* key) {
    if (!status_.ok()) return nullptr;
    const auto found = object_.find(key);
    if (found == object_.end()) {
      Fail(absl::StrCat("has no \"", key, "\""));
      return nullptr;
    }
    return &*found;
  }

  // A required array; null after an error.
  const nlohmann::json* FindArray(const char* key) {
    const nlohmann::json* value = Find(key);
    if (value == nullptr || value->is_array()) return value;
    FailAt(key, "must be an array");
    return nullptr;
  }

  void FailAt(const char* key, absl::string_view what) {
    Fail(absl::StrCat("\"", key, "\" ", what));
  }
  const absl::Status& status() const { return status_; }

 private:
  void Fail(absl::string_view what) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(where_, " ", what));
  }

  void Convert(const char* key, const nlohmann::json& value, std::string& out) {
    if (!value.is_string()) return FailAt(key, "must be a string");
    out = value.get_ref<const std::string&>();
  }
  void Convert(const char* key, const nlohmann::json& value, bool& out) {
    if (!value.is_boolean()) return FailAt(key, "must be true or false");
    out = value.get<bool>();
  }
  template <class T>
  requires std::is_integral_v<T>
  void Convert(const char* key, const nlohmann::json& value, T& out) {
    ConvertWithin(key, value, out, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  }
  template <class T>
  void ConvertWithin(const char* key, const nlohmann::json& value, T& out, T min, T max) {
    if (!value.is_number_integer()) return FailAt(key, "must be a whole number");
    const bool fits = value.is_number_unsigned()
                          ? std::cmp_greater_equal(value.get<uint64_t>(), min) &&
                                std::cmp_less_equal(value.get<uint64_t>(), max)
                          : std::cmp_greater_equal(value.get<int64_t>(), min) &&
                                std::cmp_less_equal(value.get<int64_t>(), max);
    if (!fits) return FailAt(key, absl::StrCat("is out of range: it is from ", min, " to ", max));
    out = value.get<T>();
  }

  const nlohmann::json& object_;
  const std::string where_;
  absl::Status status_;
};

}  // namespace sipi
