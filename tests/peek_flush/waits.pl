# Leaves bytes in two handles, writes a byte to stderr, waits for the end of stdin, and prints the rest.
use strict;
use warnings;
open my $file, '>', 'file' or die;
print $file 'in a file';
print 'one';
syswrite STDERR, '.';
sysread STDIN, my $byte, 1;
exit 9 if tell($file) != 9 || sysseek($file, 0, 1) != 9;
print $file " end\n";
print " end\n";
