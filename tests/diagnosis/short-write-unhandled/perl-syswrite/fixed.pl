use strict;
use warnings;

$SIG{XFSZ} = 'IGNORE';
open my $archive, '>:raw', 'archive' or die "archive: $!";
my $block = 'a' x 400_000;
my $done = 0;
while ($done < length $block) {
    $done += syswrite($archive, $block, length($block) - $done, $done) // die "archive: $!";
}
close $archive or die "archive: $!";
