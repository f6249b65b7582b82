# Loaded by Perl when it starts, under `weir run`: standard output is written behind each print.
package WeirRun;
$| = 1 if $ENV{WEIR_HOOK};
1;
