use strict;
use warnings;

my @parts;
for my $part (0 .. 7) {
    open $parts[$part], '>', "part$part" or die "part$part: $!";
}
while (my $number = <STDIN>) {
    print { $parts[$number % 8] } $number;
}
for my $part (0 .. 7) {
    close $parts[$part] or die "part$part: $!";
}
