use strict;
use warnings;

open my $log, '>>', 'daemon.log' or die "daemon.log: $!";
for my $request (1 .. 200) {
    print $log "request $request answered\n";
    kill KILL => $$ if $request == 100; # in place of the out-of-memory killer
}
