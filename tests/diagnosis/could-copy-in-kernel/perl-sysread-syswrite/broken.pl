use strict;
use warnings;

for my $number (1 .. 4) {
    open my $in, '<:raw', 'source' or die "source: $!";
    open my $out, '>:raw', "copy$number" or die "copy$number: $!";
    while (sysread $in, my $block, 4096) {
        syswrite $out, $block or die "copy$number: $!";
    }
    close $out or die "copy$number: $!";
}
