use strict;
use warnings;

open my $log, '<', 'app.log' or die "app.log: $!";
while (1) {
    while (my $line = <$log>) {
        exit 0 if $line eq "END\n";
        print $line;
    }
    select undef, undef, undef, 0.1;
    seek $log, 0, 1; # clears the end of file
}
