use strict;
use warnings;

my %count;
while (sysread STDIN, my $character, 1) {
    $count{$character}++;
}
print "$_ $count{$_}\n" for grep { /\w/ } sort keys %count;
