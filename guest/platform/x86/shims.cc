// What a freestanding compiler may call by itself (GCC manual, "Language Standards Supported by
// GCC").
#include <cstddef>
#include <cstdint>

extern "C" {

void* memcpy(void* to, const void* from, size_t count) {
  void* result = to;
  asm volatile("cld; rep movsb" : "+D"(to), "+S"(from), "+c"(count)::"memory");
  return result;
}

void* memset(void* to, int value, size_t count) {
  void* result = to;
  asm volatile("cld; rep stosb" : "+D"(to), "+c"(count) : "a"(value) : "memory");
  return result;
}

}  // extern "C"
