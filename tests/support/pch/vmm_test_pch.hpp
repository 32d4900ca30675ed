// gtest_pch.hpp for the tests of what is above apic/ and guest/, whose headers bring Abseil's.
#include "../../../vmm/pch/vmm_pch.hpp"
#include "gtest_pch.hpp"
