pid = fork do
  report = File.open('report.txt', 'w')
  50.times { |host| report.puts "host #{host} is up" }
  report.flush
  exit!(0)
end
Process.wait(pid)
