use strict;
use warnings;

my $child = fork // die "fork: $!";
if ($child == 0) {
    exec 'sleep', '1.4'; # in place of a compiler
}
print 'building ';
waitpid $child, 0;
