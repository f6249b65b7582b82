/* weir/compat/libc_names.h: removes libweir's macros FILE, stdin, stdout and stderr, so that a header of the C library that is
 * included next means its own. weir_names.h restores them. Only the headers of this directory include both. */
#pragma push_macro("FILE")
#pragma push_macro("stdin")
#pragma push_macro("stdout")
#pragma push_macro("stderr")
#undef FILE
#undef stdin
#undef stdout
#undef stderr
