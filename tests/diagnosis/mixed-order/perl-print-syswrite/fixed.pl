use strict;
use warnings;

open my $out, '>', 'message.txt' or die "message.txt: $!";
print $out "Content-Type: text/plain\n\n";
print $out "The body of the message.\n" x 20;
print $out "-- \nthe end\n";
close $out or die "message.txt: $!";
