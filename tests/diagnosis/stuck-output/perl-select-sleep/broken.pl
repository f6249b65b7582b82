use strict;
use warnings;

for my $round (1 .. 2) {
    print "round $round: nothing new\n";
    select undef, undef, undef, 1.2;
}
