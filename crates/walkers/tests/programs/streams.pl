# Leaves known bytes in Perl's handles, writes a byte to stderr, and waits. With "fork", in
# a child as well, whose number is in the file "child".
use strict;
use warnings;
use IO::Handle;

chdir $ARGV[0] or die;

sub make {
    my ($name, $bytes) = @_;
    open my $file, '>', $name or die;
    print $file $bytes;
    close $file or die;
}

sub opened {
    my ($how, $name) = @_;
    open my $file, $how, $name or die "$name: $!";
    return $file;
}

make('input', "first line\nsecond line\nthird");
make('binary-input', join '', map { chr(97 + $_ % 26) } 0 .. 19_999);
# More handles than one table has.
our @many = map { opened('>', "many$_") } 1 .. 100;
print { $many[99] } 'the last one';

our %kept = map { $_ => opened('>', $_) } qw(text full flushed closed);
$kept{encoded} = opened('>:encoding(UTF-8)', 'encoded');
$kept{crlf} = opened('>:crlf', 'crlf');
$kept{appended} = opened('>>', 'appended');
$kept{raw} = opened('>:unix', 'raw');
$kept{memory} = opened('>', \my $memory);
$kept{reader} = opened('<', 'input');
$kept{decoder} = opened('<:encoding(UTF-8)', 'input');
$kept{large} = opened('<', 'binary-input');

print { $kept{text} } 'part one, ';
print { $kept{text} } 'part two';
print { $kept{full} } 'x' x 8193;
$kept{flushed}->autoflush(1);
print { $kept{flushed} } 'on its way';
print { $kept{closed} } 'at its place';
close $kept{closed};
print { $kept{encoded} } "gr\x{fc}\x{df}e";
print { $kept{crlf} } "a line\n";
print { $kept{appended} } map { chr(97 + $_ % 26) } 0 .. 299;
print { $kept{raw} } 'at once';
print { $kept{memory} } 'in a string';
readline $kept{$_} for qw(reader decoder);
read $kept{large}, my $bytes, 100;
print 'in stdout';
if (($ARGV[1] // '') eq 'fork') {
    my $child = fork() // die;
    print { $kept{text} } $child ? 'parent' : 'child';
    make('child', $child) if $child;
    sleep 1000 unless $child;
}
# A handle that it opens on request is in a table that the walker knows by then.
$SIG{USR1} = sub {
    close $kept{text};
    $kept{late} = opened('>', 'late');
    print { $kept{late} } 'later';
    syswrite STDERR, '.';
};
syswrite STDERR, '.';
sleep 1000 while 1;
