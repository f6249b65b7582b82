# As program.py.
log = File.open("log", "w")
2.times do |i|
  puts "out #{i}"
  log.puts "log #{i}"
end
File.open("ready", "w").close
Process.kill(:KILL, $$) if ARGV[0]
sleep 60
