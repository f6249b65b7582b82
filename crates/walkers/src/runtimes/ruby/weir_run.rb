# Loaded by Ruby at its start under `weir run`: makes standard output unbuffered, or starts a thread that flushes it
# at an interval, so that bulk output keeps its speed.
module WeirRun
  def self.flush_every(seconds)
    thread = Thread.new do
      loop do
        sleep seconds
        STDOUT.flush
      rescue IOError, SystemCallError
        break
      end
    end
    thread.report_on_exception = false
  end

  # Restarts the thread in a forked child, which has only the thread that called fork.
  module RestartAfterFork
    def _fork
      pid = super
      WeirRun.start if pid.zero?
      pid
    end
  end

  def self.start
    case ENV["WEIR_HOOK"]
    when "none", "line" then STDOUT.sync = true
    when /\Adelay:(.+)/ then flush_every($1.to_f) unless STDOUT.tty?
    end
  end
end

Process.singleton_class.prepend(WeirRun::RestartAfterFork) if Process.respond_to?(:_fork)
WeirRun.start
