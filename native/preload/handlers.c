/* handlers.c: calls the program's signal handlers, and notes what they have interrupted.

   A handler can interrupt stdio between two steps of a change: the lock is taken and has no owner yet, or write(2) has
   accepted the bytes and the stream still counts them as pending. A flush in that handler would wait for ever, or write
   the bytes twice. A macro of the program, such as putc_unlocked, can have loaded the stream's pointer into a register. */
#include "handlers.h"

#include "config.h"

enum { GLIBC_BUFFER = 7, GLIBC_BUFFER_END = 8, GLIBC_LOCK = 17, MUSL_BUFFER = 11, MUSL_BUFFER_BYTES = 12 };

typedef void handler(int number, void *information, void *context);

/* A running handler. The struct is in the frame of call_handler, which siglongjmp(3) can leave. */
struct interruption {
    struct interruption *self; /* another value: the frame has been left, and other calls have used it */
    struct interruption *outer;
    const void *context;
};
static __thread struct interruption *volatile innermost __attribute__((tls_model("initial-exec")));

static void *volatile own_handlers[SIGNALS + 1];
static struct {
    uintptr_t begin, end;
} libc; /* the code of the C library */

/* Called by dl_iterate_phdr: finds the segment that contains the address `with`. */
static int find_code(struct object *object, size_t size, void *with) {
    (void)size;
    for (unsigned i = 0; i < object->count; i++) {
        const Elf64_Phdr *header = &object->headers[i];
        uintptr_t begin = object->base + header->p_vaddr;
        if (header->p_type != PT_LOAD || (uintptr_t)with - begin >= header->p_memsz) continue;
        libc.begin = begin;
        libc.end = begin + header->p_memsz;
        return 1;
    }
    return 0;
}

void handlers_start(void) {
    void *address = config.order || config.exec_flush ? next("fflush") : NULL;
    if (address && dl_iterate_phdr) dl_iterate_phdr(find_code, address);
}

static void call_handler(int number, void *information, void *context) {
    struct interruption now = {&now, innermost, context};
    handler *own = (handler *)(uintptr_t)own_handlers[number];
    innermost = &now;
    if (own) own(number, information, context);
    innermost = now.outer;
    now.self = NULL;
}

void *handlers_own(int number) { return number > 0 && number <= SIGNALS ? own_handlers[number] : NULL; }

void handlers_hide(void **seen, void *own) {
    if (*seen == (void *)(uintptr_t)call_handler) *seen = own;
}

void handlers_wrap(int number) {
    struct kernel_action action;
    if ((!config.order && !config.exec_flush) || number < 1 || number > SIGNALS || number == SIG_SYS) return;
    if (sys_sigaction(number, NULL, &action) < 0 || (uintptr_t)action.handler <= 1) return;
    if (action.handler == (void *)(uintptr_t)call_handler) return;
    own_handlers[number] = action.handler;
    action.handler = (void *)(uintptr_t)call_handler;
    sys_sigaction(number, &action, NULL);
}

struct signal_stack { /* stack_t */
    void *base;
    int flags;
    size_t size;
};

/* Forgets handlers that were left by a jump: their frames are overwritten, or are below the frame of this call. With an
   alternate stack the addresses of the frames show nothing. Returns the innermost handler that still runs, or null. */
static struct interruption *present(void) {
    enum { SS_DISABLE = 2 };
    struct interruption *at = innermost;
    struct signal_stack stack = {NULL, SS_DISABLE, 0};
    if (!at) return NULL;
    sys2(__NR_sigaltstack, NULL, &stack);
    while (at && (at->self != at || (stack.flags & SS_DISABLE && (char *)at < (char *)__builtin_frame_address(0))))
        innermost = at = at->self == at ? at->outer : NULL;
    return at;
}

/* Returns true if the interrupted code may be changing the stream: it is in the C library and not at a system call, or a
   register points into the stream's buffer. musl's writev(2) has the buffer's address in memory, and a register of its
   caller has the stream. */
static int may_be_changing(const void *context, const struct file *stream, uintptr_t buffer, uintptr_t end) {
    const unsigned long *registers = arch_registers(context);
    uintptr_t at = registers[ARCH_INSTRUCTION_POINTER];
    int is_in_libc = !libc.end || at - libc.begin < libc.end - libc.begin;
    if (is_in_libc && !arch_is_at_call((const unsigned char *)at)) return 1;
    for (int i = 0; i < ARCH_REGISTERS; i++) {
        if (buffer && registers[i] >= buffer && registers[i] <= end) return 1;
        if (!gnu_get_libc_version && registers[i] == (uintptr_t)stream) return 1;
    }
    return 0;
}

int handlers_permit_flush(const struct file *stream) {
    struct interruption *at = present();
    uintptr_t buffer, end;
    if (likely(!at)) return 1;
    const uintptr_t *words = (const uintptr_t *)(const void *)stream;
    if (gnu_get_libc_version) {
        const volatile int *lock = (const volatile int *)words[GLIBC_LOCK];
        if (lock && *lock) return 0;
        buffer = words[GLIBC_BUFFER];
        end = words[GLIBC_BUFFER_END];
    } else {
        buffer = words[MUSL_BUFFER];
        end = buffer + words[MUSL_BUFFER_BYTES];
    }
    for (; at && at->self == at; at = at->outer)
        if (may_be_changing(at->context, stream, buffer, end)) return 0;
    return 1;
}

#define EXPORT_SIGNAL(name) \
    EXPORT void *name(int number, void *handler); \
    EXPORT void *name(int number, void *handler) { \
        void *(*call)(int, void *) = NEXT(#name); \
        void *own = handlers_own(number), *before = call ? call(number, handler) : (void *)(intptr_t)fail(-38); \
        handlers_hide(&before, own); \
        handlers_wrap(number); \
        return before; \
    }

/* As sigaction in signals.c. */
EXPORT_SIGNAL(signal)
EXPORT_SIGNAL(bsd_signal)
EXPORT_SIGNAL(__sysv_signal)
EXPORT_SIGNAL(sigset)
