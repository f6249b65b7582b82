# As forks_late.cc.
large = (0..400_000).map(&:to_s)

def fork_with(file, line)
  file.write(line + "\n")
  fork do
    file.write("child of #{line}\n")
    file.flush
    exit!(0)
  end
  Process.wait
end

first = File.open("/dev/stdout", "a")
fork_with(first, "1")
second = File.open("/dev/stdout", "a")
fork_with(second, "2")
