8.times do |i|
  puts "step #{i}"
  $stderr.puts "warn #{i}"
  sleep 0.2
end
