use strict;
use warnings;
use IO::Handle;

open my $queue, '>', 'queue.txt' or die "queue.txt: $!";
for my $job (1 .. 400) {
    print $queue "job $job: mail to user$job\@example.org\n";
}
$queue->flush;
$queue->sync or die "queue.txt: $!";
close $queue or die "queue.txt: $!";
