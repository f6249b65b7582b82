# layers.pl: writes lines to the file $ARGV[0], opened with the layers $ARGV[1]. With a third argument it kills itself before it closes
# the file.
use strict;
use utf8;

open my $out, ">$ARGV[1]", $ARGV[0] or exit 2;
print $out "Größe $_\n" for 1 .. 400;
select undef, undef, undef, 0.3;
print $out "Ende é\n";
select undef, undef, undef, 0.3;
kill 'KILL', $$ if $ARGV[2];
close $out or exit 3;
