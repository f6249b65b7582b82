use strict;
use warnings;

open my $records, '<:raw', 'records' or die "records: $!";
my $sum = 0;
for my $i (0 .. 249999) {
    seek $records, $i * 32, 0;
    read $records, my $record, 32;
    $sum += $record;
}
print "$sum\n";
