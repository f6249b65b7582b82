# Loaded by Perl at its start under `weir run`: flushes standard output after each print, unless it is to be fully buffered.
package WeirRun;
$| = 1 if $ENV{WEIR_HOOK} && $ENV{WEIR_HOOK} !~ /^full/;
1;
