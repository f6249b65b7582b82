use strict;
use warnings;

$| = 1;
for my $round (1 .. 2) {
    print "round $round: nothing new\n";
    select undef, undef, undef, 1.2;
}
