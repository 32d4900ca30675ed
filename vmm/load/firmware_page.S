# One page of real-mode code that ends at the reset vector; see firmware.h. Runs at F000:F000.
  .section .rodata
  .balign 4096
  .globl sipi_firmware_page, sipi_firmware_page_end
  .code16
  .set kSegment, 0xf000
  .set kOffset, 0xf000
  .set kResetVector, 0xff0
sipi_firmware_page:
  cli
  mov $0x0f, %al  # CMOS: the shutdown byte
  out %al, $0x70
  in $0x71, %al
  cmp $0x0a, %al
  jne 1f
  xor %ax, %ax
  mov %ax, %ds
  ljmpw *0x467
1:
  mov $0x564, %dx  # kFirmwarePort: this write does not return
  out %al, %dx
2:
  hlt
  jmp 2b
  .fill kResetVector - (. - sipi_firmware_page), 1, 0xf4
  ljmpw $kSegment, $kOffset
  .fill 0x1000 - (. - sipi_firmware_page), 1, 0xf4
sipi_firmware_page_end:
  .section .note.GNU-stack, "", @progbits
