/* weir/compat/libc_names.h: for the other headers of this directory: FILE and the standard streams are the C library's
 * until weir_names.h is included. */
#pragma push_macro("FILE")
#pragma push_macro("stdin")
#pragma push_macro("stdout")
#pragma push_macro("stderr")
#undef FILE
#undef stdin
#undef stdout
#undef stderr
