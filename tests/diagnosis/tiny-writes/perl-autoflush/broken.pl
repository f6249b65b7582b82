use strict;
use warnings;

$| = 1;
for my $i (1 .. 300000) {
    print $i % 97, " ";
    print "\n" if $i % 20 == 0;
}
