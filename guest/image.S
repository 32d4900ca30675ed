// guest.elf inside the command: nothing to look for at run time.
    .section .rodata
    .balign 4096
    .globl sipi_guest_elf, sipi_guest_elf_end
sipi_guest_elf:
    .incbin IMAGE_PATH
sipi_guest_elf_end:
    .byte 0
    .section .note.GNU-stack, "", @progbits
