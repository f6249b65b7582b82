journal = File.open('journal.txt', 'w')
balance = 100
(1..30).each do |step|
  balance -= step
  journal.puts "step #{step}: balance #{balance}"
  next unless balance.negative?

  journal.flush
  Process.kill(:KILL, Process.pid)
  sleep
end
