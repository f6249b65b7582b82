use strict;
use warnings;

for my $number (1 .. 4) {
    system('cp', 'source', "copy$number") == 0 or die "cp: $?";
}
