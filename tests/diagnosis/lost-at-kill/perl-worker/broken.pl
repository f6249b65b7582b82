use strict;
use warnings;

open my $log, '>>', 'worker.log' or die "worker.log: $!";
for my $job (1 .. 1000) {
    print {$log} "job $job finished\n";
    select undef, undef, undef, 0.02;
}
