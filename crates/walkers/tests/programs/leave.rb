# Leaves bytes in Ruby's streams, writes a byte to stderr; at a signal adds a tail to each and exits.
Dir.chdir(ARGV[0])
told = false
Signal.trap('USR1') { told = true }
kept = { 'full' => 'w', 'append' => 'a', 'both' => 'w+', 'latin' => 'w:iso-8859-1' }.to_h do |name, how|
  [name, File.open(name, how)]
end
kept['full'].write((0...3000).map { |i| (97 + i % 26).chr }.join)
kept['append'].write('appended')
kept['both'].write('read and written')
kept['latin'].write("gr\u00fc\u00dfe")
$stdout.write('in stdout')
$stderr.syswrite('.')
sleep 0.01 until told
kept.each_value do |file|
  file.write(" tail\n")
  file.close
end
$stdout.write(" tail\n")
