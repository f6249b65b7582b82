use strict;
use warnings;
use IO::Handle;

open(my $f, '>>', 'invoices') or die "invoices: $!";
print $f "invoice $_: 12.50\n" for 1 .. 20;
$f->flush() or die "flush: $!";
$f->sync or die "sync: $!";
close($f) or die "close: $!";
