use strict;
use warnings;
use Fcntl;

sysopen my $audit, 'audit.log', O_WRONLY | O_CREAT | O_TRUNC | O_SYNC or die "audit.log: $!";
for my $i (1 .. 500) {
    syswrite $audit, "user$i logged in\n" or die "audit.log: $!";
}
close $audit or die "audit.log: $!";
