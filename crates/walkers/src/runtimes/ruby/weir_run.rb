# Loaded by Ruby at its start under `weir run`: makes standard output unbuffered, or starts a thread that flushes it
# at an interval, so that bulk output keeps its speed.
module WeirRun
  class << self
    attr_reader :thread
  end

  def self.flush_every(seconds)
    @thread = Thread.new do
      loop do
        sleep seconds
        STDOUT.flush
      rescue IOError, SystemCallError
        break
      end
    end
    @thread.report_on_exception = false
    ThreadGroup.new.add(@thread)
  rescue ThreadError
    # The program has frozen or enclosed its group of threads, or reached a limit.
  end

  # Hides the thread, which never ends, from a program that waits for all threads.
  module HideThread
    def list
      super - [WeirRun.thread]
    end
  end

  # Restarts the thread in a forked child, which has only the thread that called fork.
  module RestartAfterFork
    def _fork
      pid = super
      WeirRun.start if pid.zero?
      pid
    end
  end

  # As RestartAfterFork. Before Ruby 3.1, fork does not call _fork.
  def self.wrap_fork
    [Process.singleton_class, Kernel.singleton_class, Kernel].each do |owner|
      owner.module_eval do
        alias_method :fork_without_weir, :fork
        def fork
          unless block_given?
            pid = fork_without_weir
            WeirRun.start unless pid
            return pid
          end
          fork_without_weir do
            WeirRun.start
            yield
          end
        end
      end
    end
    Kernel.send(:private, :fork)
  end

  def self.start
    case ENV["WEIR_HOOK"]
    when "none", "line" then STDOUT.sync = true
    when /\Adelay:(.+)/ then flush_every($1.to_f) unless STDOUT.tty?
    end
  end
end

if ENV["WEIR_HOOK"].to_s.start_with?("delay:")
  Thread.singleton_class.prepend(WeirRun::HideThread)
  Process.respond_to?(:_fork) ? Process.singleton_class.prepend(WeirRun::RestartAfterFork) : WeirRun.wrap_fork
end
WeirRun.start
