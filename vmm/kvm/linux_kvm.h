// linux/kvm.h, mended for C++. Include this before anything that includes <linux/kvm.h> wherever an
// ioctl on a struct with a flexible array is made.
//
// In the headers of Linux 6.1 such an array follows an empty struct. In C++ that has a size of one,
// so the arrays lie 4 bytes too far, and the ioctl numbers that hold the structs' sizes
// (KVM_GET_MSRS, KVM_SET_MSRS, KVM_GET_SUPPORTED_CPUID, KVM_SET_CPUID2, KVM_SET_SIGNAL_MASK) are
// others than KVM's.
#pragma once

#include <linux/stddef.h>

#undef __DECLARE_FLEX_ARRAY
#define __DECLARE_FLEX_ARRAY(TYPE, NAME) TYPE NAME[]

#include <linux/kvm.h>
