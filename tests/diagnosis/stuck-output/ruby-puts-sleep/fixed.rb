$stdout.sync = true
8.times do |i|
  puts "load #{i}"
  sleep 0.2
end
