use strict;
use warnings;

my ($files, $lines) = (0, 0);
while (my $file = <STDIN>) {
    chomp $file;
    $files++;
    $lines += () = `sort $file`;
}
print "$files files, $lines lines\n";
