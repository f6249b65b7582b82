use strict;
use warnings;

my $version = <STDIN>;
die "what is this: $version" unless $version =~ /^# version 3/;
exit(system('tail', '-n', '+1') >> 8);
