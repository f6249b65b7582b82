use strict;
use warnings;
use IO::Handle;

open my $log, '>>', 'daemon.log' or die "daemon.log: $!";
$log->autoflush(1);
for my $request (1 .. 200) {
    print $log "request $request answered\n";
    kill KILL => $$ if $request == 100; # in place of the out-of-memory killer
}
