use strict;
use warnings;

for my $i (1 .. 300000) {
    print $i % 97, " ";
    print "\n" if $i % 20 == 0;
}
