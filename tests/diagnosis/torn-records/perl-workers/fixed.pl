use strict;
use warnings;
use IO::Handle;

for my $worker (1 .. 3) {
    next if fork // die "fork: $!";
    open my $log, '>>', 'work.log' or die "work.log: $!";
    $log->autoflush(1);
    for my $job (1 .. 2000) {
        print $log "worker $worker finished job $job without error\n";
        select undef, undef, undef, 0.001 if $job % 50 == 0;
    }
    close $log or die "work.log: $!";
    exit 0;
}
1 while wait > 0;
