use strict;
use warnings;
use Fcntl;
use IO::Handle;

open my $mail, '>', 'tmp/1' or die "tmp/1: $!";
print $mail "Subject: hello\n\n", "line\n" x 50;
$mail->flush;
$mail->sync or die "tmp/1: $!";
close $mail or die "tmp/1: $!";
rename 'tmp/1', 'new/1' or die "rename: $!";
for my $name ('new', 'tmp') {
    sysopen my $directory, $name, O_RDONLY | O_DIRECTORY or die "$name: $!";
    $directory->sync or die "$name: $!";
}
