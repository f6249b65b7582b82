# As program.py.
open(my $log, ">", "log") or die;
for my $i (0, 1) {
    print "out $i\n";
    print $log "log $i\n";
}
open(my $ready, ">", "ready") or die;
close $ready;
kill 9, $$ if @ARGV;
sleep 60;
