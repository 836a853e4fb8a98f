# frozen_string_literal: true

module Redlock
  # A submitted call: its result, and the means to wake its thread or fiber.
  class Call # :nodoc:
    # Nil until the call has ended.
    attr_reader :status

    # The lease of a call that ends when the manager is closed; nil for others, and once nobody waits for the call.
    attr_reader :lease

    def initialize(lease = nil)
      @lease = lease
      @wakings = Thread::Queue.new
    end

    def end_with(status)
      @status = status
      wake
    end

    def over?
      !@status.nil?
    end

    def wake
      @wakings.push(true) if @wakings.empty?
    end

    # Waits until it is woken; returns at once if it was woken since the last time.
    def sleep
      @wakings.pop
    end

    # The collector may find this call for a long time, because its address is left on the stack of a thread. That
    # must not keep a lease whose block is dropped.
    def drop_lease
      @lease = nil
    end
  end
  private_constant :Call

  # The calls that threads wait for. The first call in the line leads: it waits for the descriptor and takes the
  # events of all calls. The others sleep until their calls have ended, or until they are first.
  class Line # :nodoc:
    def initialize
      @mutex = Mutex.new
      @calls = {}.compare_by_identity
      @reader, @writer = pipe
    end

    # Yields whenever the call leads, until the call has ended or the block returns :enough. A call that stands by
    # leads only if no other call does.
    def wait(call, standing_by: false)
      @mutex.synchronize { standing_by ? @standby = call : @calls[call] = true }
      until call.over?
        if leads?(call)
          break if yield == :enough
        else
          call.sleep
        end
      end
    ensure
      # A second signal may come before the first is handled. Without the second try, all other calls would then
      # sleep forever.
      begin
        Undisturbed.run { leave(call) }
      ensure
        Undisturbed.run { leave(call) }
      end
    end

    # The leading call waits until the descriptor is readable or another thread has taken its event.
    def pause(call, descriptor, seconds)
      @paused = call
      IO.select([descriptor, @reader], nil, nil, seconds) unless call.over?
    ensure
      @paused = nil
      @reader.read_nonblock(64, exception: false)
    end

    # Ends the call.
    def end_call(call, status)
      call.end_with(status)
      @writer.write_nonblock(".", exception: false) if call.equal?(@paused)
    end

    def close
      [@reader, @writer].each(&:close)
    end

    private

    # If an exception from outside interrupts IO.pipe, Ruby 3.1 closes the pipe's descriptors twice. By the second
    # time they may belong to something else: a file, or a connection. A thread of its own is out of reach, even of
    # signal handlers, which run on the main thread and ignore masks. If a handler forks, that thread does not exist
    # in the child: it is joined there, and has made nothing. (Thread#value breaks the stack of Ruby 3.1.2 in such a
    # child.)
    def pipe
      ends = nil
      Thread.handle_interrupt(Undisturbed::MASKED) { Thread.new { ends = make_pipe } }.join until ends
      ends
    end

    def make_pipe
      Thread.current.report_on_exception = false # the thread that joins it gets the exception
      IO.pipe
    end

    def leader
      (@calls.first || [@standby]).first
    end

    def leads?(call)
      @mutex.synchronize { leader.equal?(call) }
    end

    def leave(call)
      @mutex.synchronize do
        @calls.delete(call)
        @standby = nil if call.equal?(@standby)
        leader&.wake
      end
    end
  end
  private_constant :Line
end
