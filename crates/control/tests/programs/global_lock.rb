# As global_lock.ml.
file = File.open(ARGV[0], "a")
lines = ARGV[1].to_i
ended = false
writers = 4.times.map do |thread|
  Thread.new do
    lines.times do |number|
      file.write("#{thread} #{number} a line that ends here\n")
      file.flush if number % 5 == 0
      sleep 0.0005 if number % 20 == 0
    end
  end
end
others = 2.times.map { Thread.new { Array.new(10, 0) until ended } }
writers.each(&:join)
ended = true
others.each(&:join)
file.close
