# frozen_string_literal: true

require "fiddle"
require "io/wait" unless IO.method_defined?(:wait_readable)

module Redlock
  # A reference that does not keep its object from being collected.
  class Weak # :nodoc:
    def initialize(object)
      @map = ObjectSpace::WeakMap.new
      @map[self] = object
    end

    # The object; nil if it was collected.
    def itself
      @map[self]
    end
  end
  private_constant :Weak

  # The events of a C manager, and the calls and leases that wait for them.
  class Events # :nodoc:
    # How many seconds a leader waits at a time. Only a child that a signal handler has forked during a call needs
    # this limit: the events that the parent waits for never come there.
    PATIENCE = 1
    # The same if the system has no descriptor to wait for.
    GLANCE = 0.005

    def initialize(manager)
      @manager = manager
      C.call("RedLock_IsLookUpDue", manager.to_i) # from now on #take leaves the resolver to RedLock_LookUp
      @event = C::Structs::Event.malloc(Fiddle::RUBY_FREE)
      @event.size = C::Structs::Event.size
      @event.user_data = 0
      @calls = {}
      @kept = {}
      @taking = Mutex.new
      @mutex = Mutex.new
    end

    # A call whose event is waited for. It is submitted with its object_id, and must end with #forget. If it has a
    # lease, #cancel_calls cancels it.
    def begin_call(lease)
      enter_process
      call = Call.new(lease)
      number = call.object_id
      @mutex.synchronize { @calls[number] = call }
    end

    def forget(call)
      @mutex.synchronize { @calls.delete(call.object_id) }
      call.drop_lease
    end

    # Cancels the calls that are under way in this process. With the mutex, no lease gets from such a call to its
    # next one, which may be an unlock.
    def cancel_calls
      @mutex.synchronize do
        next unless @process && @process.last == Process.pid

        @calls.each_value { |call| call.lease&.__send__(:cancel, call) }
      end
    end

    # Nobody waits any more.
    def close
      @line&.close
    end

    # From now on the lease is told if its lock cannot be kept alive. The lock must be kept alive with the lease's
    # object_id. The lease of a block may be collected, together with a fiber that never ends the block: an Enumerator
    # that somebody has dropped. Then the library no longer keeps its lock. Returns whether the lease is new here.
    def keep(lease)
      enter_process
      number = lease.object_id
      @mutex.synchronize do
        is_new = !@kept.key?(number)
        @kept[number] = lease.__send__(:of_block?) ? Weak.new(lease) : lease
        is_new
      end
    end

    def keep_no_more(lease)
      @mutex.synchronize { @kept.delete(lease.object_id) }
    end

    def keeps?
      @mutex.synchronize do
        @kept.delete_if { |_, lease| lease.itself.nil? }
        !@kept.empty?
      end
    end

    # Waits until the call has ended, or until the time that the block returns, if it returns one. Fibers of a
    # scheduler leave the leading to the call that stands by, because their thread may be busy with another fiber.
    def wait(call, &look_up)
      take
      if in_scheduler?
        look_up.call
        call.sleep until call.over?
      else
        lead(call, &look_up)
      end
    end

    # The same for a call that leads only if no thread waits for its own call. This call never ends.
    def stand_by(call, &look_up)
      lead(call, standing_by: true, &look_up)
    end

    def in_scheduler?
      Fiber.respond_to?(:current_scheduler) && !Fiber.current_scheduler.nil?
    end

    # Does the work that is due and hands on all events, also an event that an interrupted call of this method left.
    def take
      Thread.handle_interrupt(Undisturbed::MASKED) do
        @taking.synchronize do
          hand_on
          hand_on while (status = C.call(C::LOOK_FOR_EVENT, @manager.to_i, 0, @event.to_i)).zero?
          C.check(status, C.words(C.call("RedLock_ErrorMessage", @manager.to_i))) unless status == C::NO_EVENT
        end
      end
    end

    private

    def lead(call, standing_by: false)
      process = @process
      line = @line
      line.wait(call, standing_by: standing_by) do
        moment = yield if block_given?
        left = moment && moment - now
        next :enough if left && left <= 0

        pause(standing_by ? nil : line, call, [left, PATIENCE].compact.min)
        raise Forked.new("the call belongs to the parent process", -3) unless enter_process.equal?(process)

        take
        :enough if standing_by
      end
    end

    def hand_on
      return if @event.user_data.zero?

      case @event.kind
      when C::DONE then (call = @calls[@event.user_data]) && @line.end_call(call, @event.status)
      when C::LOST then @kept[@event.user_data]&.itself&.__send__(:be_lost)
      end
      @event.user_data = 0
    end

    # The means of waiting belong to a process. A child has a descriptor of its own. It has another number than the
    # parent's while the child has a copy of the parent's descriptor.
    def enter_process
      return @process if @process == process

      line = Line.new
      @mutex.synchronize do
        begin_anew(line) unless @process == process
        @process
      end
    end

    # If this is interrupted, the next call does it.
    def begin_anew(line)
      process = self.process # a signal handler may have forked since the last check
      descriptor, = process
      @io = descriptor.negative? ? nil : IO.for_fd(descriptor, autoclose: false)
      @calls = {}
      @kept = {}
      @line = line
      @event.user_data = 0
      @process = process
    end

    def process
      [C.call("RedLock_Descriptor", @manager.to_i), Process.pid]
    end

    def pause(line, call, seconds)
      if @io
        line ? line.pause(call, @io, seconds) : @io.wait_readable(seconds)
      else
        sleep(GLANCE)
      end
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
  private_constant :Events
end
