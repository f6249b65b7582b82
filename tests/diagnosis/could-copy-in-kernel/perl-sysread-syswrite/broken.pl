use strict;
use warnings;

open my $in, '<:raw', 'source' or die "source: $!";
open my $out, '>:raw', 'copy' or die "copy: $!";
while (sysread $in, my $block, 4096) {
    syswrite $out, $block or die "copy: $!";
}
close $out or die "copy: $!";
