use strict;
use warnings;

my %count;
while (read STDIN, my $character, 1) {
    $count{$character}++;
}
print "$_ $count{$_}\n" for grep { /\w/ } sort keys %count;
