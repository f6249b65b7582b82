$stdout.sync = true
5.times do |i|
  puts "step #{i}"
  $stderr.puts "warn #{i}"
  sleep 0.15
end
