use strict;
use warnings;

system('cp', 'source', 'copy') == 0 or die "cp: $?";
