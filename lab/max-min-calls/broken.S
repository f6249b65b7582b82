/* 9,999 bytes, each by a write(2) of its own. */
#if defined(__x86_64__)
    .globl _start
_start:
    mov $9999, %ebx
again:
    mov $1, %eax            /* write(1, byte, 1) */
    mov $1, %edi
    lea byte(%rip), %rsi
    mov $1, %edx
    syscall
    dec %ebx
    jnz again
    mov $60, %eax           /* exit(0) */
    xor %edi, %edi
    syscall
#elif defined(__aarch64__)
    .globl _start
_start:
    mov x19, #9999
again:
    mov x0, #1              /* write(1, byte, 1) */
    adr x1, byte
    mov x2, #1
    mov x8, #64
    svc #0
    subs x19, x19, #1
    b.ne again
    mov x0, #0              /* exit(0) */
    mov x8, #93
    svc #0
#endif
byte:
    .ascii "x"
    .section .note.GNU-stack, "", %progbits
