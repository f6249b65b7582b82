use strict;
use warnings;

open my $numbers, '<', 'input' or die "input: $!";
my $lines = 0;
$lines += $_ =~ tr/\n// while sysread $numbers, $_, 65536;
close $numbers or die "input: $!";
print "$lines\n";
