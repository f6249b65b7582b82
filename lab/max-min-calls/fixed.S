/* 9,999 bytes by one write(2). */
#if defined(__x86_64__)
    .globl _start
_start:
    mov $1, %eax            /* write(1, bytes, 9999) */
    mov $1, %edi
    lea bytes(%rip), %rsi
    mov $9999, %edx
    syscall
    mov $60, %eax           /* exit(0) */
    xor %edi, %edi
    syscall
#elif defined(__aarch64__)
    .globl _start
_start:
    mov x0, #1              /* write(1, bytes, 9999) */
    adr x1, bytes
    mov x2, #9999
    mov x8, #64
    svc #0
    mov x0, #0              /* exit(0) */
    mov x8, #93
    svc #0
#endif
bytes:
    .fill 9999, 1, 0x78     /* x */
    .section .note.GNU-stack, "", %progbits
