use strict;
use warnings;

for my $i (1 .. 300000) {
    printf "%06d %s\n", $i, $i % 2 ? "odd" : "even";
}
