// RETURN_IF_ERROR and ASSIGN_OR_RETURN for absl::Status (Abseil 20220623 has none).
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define SIPI_CONCAT_INNER(a, b) a##b
#define SIPI_CONCAT(a, b) SIPI_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expr)                                                        \
  do {                                                                               \
    if (absl::Status sipi_status_ = (expr); !sipi_status_.ok()) return sipi_status_; \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, expr) \
  ASSIGN_OR_RETURN_IMPL(SIPI_CONCAT(sipi_or_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr)    \
  auto tmp = (expr);                             \
  if (!tmp.ok()) return std::move(tmp).status(); \
  lhs = std::move(tmp).value()
