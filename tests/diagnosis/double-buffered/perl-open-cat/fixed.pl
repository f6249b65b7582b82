use strict;
use warnings;

open my $numbers, '<', 'input' or die "input: $!";
my $sum = 0;
$sum += $_ while <$numbers>;
close $numbers or die "input: $!";
print "$sum\n";
