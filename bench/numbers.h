// The command line of a benchmark in C++: whole numbers, each of which may be left out.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <system_error>
#include <vector>

namespace sipi::bench {

struct Number {
  const char* name;
  uint64_t otherwise;  // where it is left out
  uint64_t min;
  uint64_t max;
};

// The numbers in the order of `wanted`. For --help it prints `help`, which ends in a newline, and
// the numbers, and ends the program; what is no number in its range ends it with one line and
// status 2. At the begin of main only.
inline std::vector<uint64_t> NumbersOf(int argc, char** argv, const char* help,
                                       std::initializer_list<Number> wanted) {
  const char* slash = std::strrchr(argv[0], '/');
  const char* program = slash == nullptr ? argv[0] : slash + 1;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--help" && std::string_view(argv[i]) != "-h") continue;
    std::printf("%s\n", help);
    for (const Number& each : wanted) {
      std::printf("  %-12s %llu to %llu (default %llu)\n", each.name,
                  static_cast<unsigned long long>(each.min),
                  static_cast<unsigned long long>(each.max),
                  static_cast<unsigned long long>(each.otherwise));
    }
    std::exit(0);
  }
  std::vector<uint64_t> numbers;
  for (const Number& each : wanted) {
    const size_t index = numbers.size() + 1;
    const std::string_view text = index < static_cast<size_t>(argc) ? argv[index] : "";
    uint64_t number = each.otherwise;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool given = index < static_cast<size_t>(argc);
    const bool read = error == std::errc() && end == text.data() + text.size();
    if (given && (!read || number < each.min || number > each.max)) {
      std::fprintf(stderr, "%s: %s: '%s' is no whole number from %llu to %llu; --help tells more\n",
                   program, each.name, argv[index], static_cast<unsigned long long>(each.min),
                   static_cast<unsigned long long>(each.max));
      std::exit(2);
    }
    numbers.push_back(given ? number : each.otherwise);
  }
  if (static_cast<size_t>(argc) > wanted.size() + 1) {
    std::fprintf(stderr, "%s: '%s' is one too many; --help tells more\n", program,
                 argv[wanted.size() + 1]);
    std::exit(2);
  }
  return numbers;
}

}  // namespace sipi::bench
