use strict;
use warnings;

open my $archive, '>:raw', 'archive' or die "archive: $!";
my $block = 'a' x 400_000;
defined syswrite $archive, $block or die "archive: $!";
close $archive or die "archive: $!";
