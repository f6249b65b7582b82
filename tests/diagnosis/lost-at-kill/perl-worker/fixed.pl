use strict;
use warnings;
use IO::Handle;

open my $log, '>>', 'worker.log' or die "worker.log: $!";
$log->autoflush(1);
for my $job (1 .. 1000) {
    print {$log} "job $job finished\n";
    select undef, undef, undef, 0.02;
}
