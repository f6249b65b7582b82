use strict;
use warnings;

my $version = '';
while ($version !~ /\n/ && sysread STDIN, my $character, 1) {
    $version .= $character;
}
die "what is this: $version" unless $version =~ /^# version 3/;
exit(system('tail', '-n', '+1') >> 8);
