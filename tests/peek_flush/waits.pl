# Leaves bytes in two handles, says so on stderr, waits until stdin ends, and says the rest.
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
