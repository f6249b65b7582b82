# Loaded by Perl at its start under `weir run`: flushes standard output after each print.
package WeirRun;
$| = 1 if $ENV{WEIR_HOOK};
1;
