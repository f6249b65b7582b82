# Leaves known bytes in Ruby's streams, writes a byte to stderr, and waits. With "fork", in a child as well,
# whose number is in the file "child".
Dir.chdir(ARGV[0])
File.write('input', "first line\nsecond line\nthird")
File.write('large', 'a' * 20_000)
kept = %w[text full flushed closed].to_h { |name| [name, File.open(name, 'w')] }
kept['decoder'] = File.open('input', 'r:iso-8859-1:utf-8')
kept['reader'] = File.open('input')
kept['large'] = File.open('large')
kept['text'].write('part one, ')
kept['text'].write('part two')
kept['full'].write('x' * 300)
kept['flushed'].sync = true
kept['flushed'].write('on its way')
kept['closed'].write('at its place')
kept['closed'].close
kept['reader'].gets
kept['decoder'].getc
kept['large'].getc
pipe = IO.popen('cat > /dev/null', 'w')
pipe.sync = false
pipe.write('into a pipe')
$stdout.write('in stdout')
if ARGV[1] == 'fork'
  child = fork
  kept['text'].write(child ? ' parent' : ' child')
  File.write('child', child) if child
  sleep unless child
end
late = nil
# A stream that it opens on request.
Signal.trap('USR1') do
  kept['text'].close
  late = File.open('late', 'w')
  late.write('later')
  $stderr.syswrite('.')
end
$stderr.syswrite('.')
sleep
