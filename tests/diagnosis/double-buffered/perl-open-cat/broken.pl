use strict;
use warnings;

open my $numbers, '-|', 'cat', 'input' or die "cat: $!";
my $sum = 0;
$sum += $_ while <$numbers>;
close $numbers or die "cat: $?";
print "$sum\n";
