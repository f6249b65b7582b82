/* weir/compat/weir_names.h: restores the macros that libc_names.h has removed, and defines WEIR_COMPAT_REFUSED. */
#pragma pop_macro("stderr")
#pragma pop_macro("stdout")
#pragma pop_macro("stdin")
#pragma pop_macro("FILE")

/* In C a call with a stream of libweir would only be a warning, so the functions are declared again with this
 * attribute. In C++ it is an error by itself. */
#if defined(__GNUC__) && !defined(__cplusplus) && !defined(WEIR_COMPAT_REFUSED)
#ifdef __clang__
#define WEIR_COMPAT_REFUSED(sentence) __attribute__((__unavailable__(sentence)))
#else
#define WEIR_COMPAT_REFUSED(sentence) __attribute__((__error__(sentence)))
#endif
#endif
