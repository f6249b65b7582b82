use strict;
use warnings;

my @parts;
for my $part (0 .. 7) {
    open $parts[$part], '>', "part$part" or die "part$part: $!";
}
while (my $number = <STDIN>) {
    print { $parts[$number % 8] } $number;
}
close $_ for @parts;
