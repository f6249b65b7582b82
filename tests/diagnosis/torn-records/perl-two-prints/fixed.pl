use strict; use warnings; use IO::Handle;
open my $log, '>>', 'workers.log' or die;
$log->autoflush(1);
my @workers;
for my $worker (1 .. 3) {
    my $pid = fork // die;
    if (!$pid) {
        for my $line (1 .. 20) {
            select undef, undef, undef, 0.005;
            print $log "worker $worker line $line\n";
        }
        exit;
    }
    push @workers, $pid;
}
waitpid $_, 0 for @workers;
