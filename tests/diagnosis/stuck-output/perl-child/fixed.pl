use strict;
use warnings;
use IO::Handle;

my $child = fork // die "fork: $!";
if ($child == 0) {
    exec 'sleep', '1.4'; # in place of a compiler
}
print 'building ';
STDOUT->flush();
waitpid $child, 0;
