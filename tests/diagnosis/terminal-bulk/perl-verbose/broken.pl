use strict;
use warnings;

my $good = 0;
for my $i (1 .. 45000) {
    my $good_one = $i % 17 != 0;
    print "checking /data/archive/file$i ... ", $good_one ? "good" : "bad", "\n";
    $good++ if $good_one;
}
print "$good good\n";
