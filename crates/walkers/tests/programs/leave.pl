# Leaves bytes in Perl's handles, writes a byte to stderr; at a signal adds a tail to each and exits.
use strict;
use warnings;
chdir $ARGV[0] or die;
my $told = 0;
$SIG{USR1} = sub { $told = 1 };
my %kept;
for (['full', '>'], ['append', '>>'], ['utf8', '>:utf8']) {
    open $kept{ $_->[0] }, $_->[1], $_->[0] or die;
}
print { $kept{full} } map { chr(97 + $_ % 26) } 0 .. 2999;
print { $kept{append} } 'appended';
print { $kept{utf8} } "gr\x{fc}\x{df}e";
print 'in stdout';
syswrite STDERR, '.';
select undef, undef, undef, 0.01 until $told;
for ('full', 'append', 'utf8') {
    print { $kept{$_} } " tail\n";
    close $kept{$_} or die;
}
print " tail\n";
