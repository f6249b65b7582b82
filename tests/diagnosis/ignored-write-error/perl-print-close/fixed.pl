use strict;
use warnings;

open my $backup, '>', '/dev/full' or die "backup: $!";
for my $i (1 .. 5000) {
    print $backup "entry $i\n" or die "backup: $!";
}
close $backup or die "backup: $!";
