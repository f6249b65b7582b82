log = File.open('worker.log', 'a')
log.sync = true
1000.times do |job|
  log.puts "job #{job} finished"
  sleep 0.02
end
