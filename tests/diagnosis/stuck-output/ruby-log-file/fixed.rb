log = File.open('poller.log', 'a')
8.times do |round|
  log.write("round #{round}: queue has #{round * 7 % 5} jobs\n")
  log.flush
  sleep 0.2
end
log.close
