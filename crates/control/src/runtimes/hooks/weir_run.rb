# Loaded by Ruby when it starts, under `weir run`: standard output is written at once, or by a thread that
# looks after it now and then, so that bulk output keeps its speed.
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

  # A child process has no threads but the one that forked.
  module Forked
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

Process.singleton_class.prepend(WeirRun::Forked) if Process.respond_to?(:_fork)
WeirRun.start
