use strict;
use warnings;

open my $log, '>>', 'poller.log' or die "poller.log: $!";
for my $round (1 .. 8) {
    print {$log} "round $round: queue has ", $round * 7 % 5, " jobs\n";
    select undef, undef, undef, 0.2;
}
close $log or die "poller.log: $!";
