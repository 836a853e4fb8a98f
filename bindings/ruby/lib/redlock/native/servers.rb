# frozen_string_literal: true

require "fiddle"

module Redlock
  # The C manager with its settings. It is freed when it was closed and the last call on it has ended, or together
  # with its owner.
  class Servers # :nodoc:
    # The severities WARN, INFO and DEBUG of Ruby's Logger, by the levels of the library.
    WARN = 2
    SEVERITIES = { 1 => WARN, 2 => 1 }.freeze
    DEBUG = 0
    # The number of lines that may wait during a long call. If there are more, the last ones are kept.
    LOG_LINES = 1000
    LINE_BYTES = 1024

    attr_reader :events

    # How much faster a server's clock may run than this machine's.
    attr_accessor :drift

    def initialize(user, password)
      @handle = C.handle("RedLock")
      @events = Events.new(@handle)
      @user = user
      # A password that is not a function is passed on once and not stored, so that nobody can find it here.
      @ask = password if password.respond_to?(:call)
      @asking = Mutex.new # the C manager keeps the message of a call: one call at a time
      @counting = Mutex.new
      @calls = 0
      @open = true
      @lines = []
      @watching = Mutex.new
      @watched = {}.compare_by_identity
      @driven_in = @resolver = nil
    end

    # The C manager, for those who have entered.
    def address
      @handle.to_i
    end

    # Keeps the C manager from being freed before #leave. A +leaving+ call may enter a closed manager that is not
    # freed yet. An exception from outside may leave an ended call counted. Then the garbage collector frees the C
    # manager.
    def enter(leaving: false)
      @counting.synchronize do
        check_open unless leaving && !@freed
        @calls += 1
      end
    end

    def check_open
      raise Closed, "the manager is closed" unless @open
    end

    def leave
      @counting.synchronize { free_if_done(@calls -= 1) }
    end

    # Yields the C manager.
    def use(leaving: false)
      entered = enter(leaving: leaving)
      begin
        yield address
      ensure
        tell if listens?
      end
    ensure
      leave if entered
    end

    # Returns the message of a successful call.
    def call(function, *arguments)
      use do |address|
        @asking.synchronize do
          check_open # it may have waited for its turn
          status = C.call(function, address, *arguments)
          words = C.words(C.call("RedLock_ErrorMessage", address))
          C.check(status, words)
          words
        end
      end
    end

    # The state of each server.
    def portraits
      use do |address|
        count = C::Structs::Count.malloc(Fiddle::RUBY_FREE)
        count.value = 0
        ask_for_portraits(address, 0, count)
        size = C::Structs::Server.size
        room = Fiddle::Pointer.malloc(count.value * size, Fiddle::RUBY_FREE)
        C::Structs::Server.new(room).size = size
        ask_for_portraits(address, room.to_i, count)
        Array.new(count.value) { |i| portrait(C::Structs::Server.new(room + (i * size))) }
      end
    end

    # The counters.
    def stats
      size = C::Structs::STATS_WORDS * 8
      room = Fiddle::Pointer.malloc(size, Fiddle::RUBY_FREE)
      room[0, size] = [size, *Array.new(C::Structs::STATS_WORDS - 1, 0)].pack("Q*")
      use do |address|
        status = C.call("RedLock_GetStats", address, room.to_i)
        C.check(status, C.words(C.call("RedLock_ErrorMessage", address)))
      end
      stats_of(room[0, size].unpack("q*").drop(1))
    end

    # The counters as text.
    def stats_text
      use do |address|
        size = C.call("RedLock_StatsText", address, 0, 0)
        loop do
          room = Fiddle::Pointer.malloc(size + 1, Fiddle::RUBY_FREE)
          needed = C.call("RedLock_StatsText", address, room.to_i, size + 1)
          break C.words(room) if needed <= size

          size = needed
        end
      end
    end

    # Waits for a submitted call; returns its status. A call that takes a lock is +patient+: meanwhile servers may
    # want another password.
    def wait_for(call, patient: false)
      watched = @events.in_scheduler?
      watch_over(call) if watched
      until call.over?
        @events.wait(call) { patient ? look_around : look_up_if_due }
        renew_log_in if patient && !watched
      end
      call.status
    ensure
      @watched.delete(call) if watched
    end

    # From now on the library has a thread in this process that keeps locks alive, and looks up names.
    def have_driver
      call("RedLock_SetBackgroundThread", 1)
      @driven_in = Process.pid
    end

    # Tells the lease if its lock cannot be kept alive. Returns whether the lease is new here.
    def keep(lease)
      is_new = @events.keep(lease)
      @watching.synchronize { begin_to_watch }
      is_new
    end

    def keep_no_more(lease)
      @events.keep_no_more(lease)
    end

    # Accepts anything that responds to +call+ with a severity and a line, or to +add+ as a Logger does.
    def logger=(logger)
      unless logger.nil? || logger.respond_to?(:call)
        raise TypeError, "logger must respond to add or call" unless logger.respond_to?(:add)

        logger = logger.method(:add)
      end
      @logger = logger
      call("RedLock_KeepLog", listens? ? LOG_LINES : 0)
    end

    # Calls that begin after this, or check whether the manager is open, end by themselves.
    def close
      @counting.synchronize do
        @open = false
        @events.cancel_calls unless @freed
        free_if_done(@calls)
      end
    end

    def closed?
      !@open
    end

    # Gives the library the password for log-ins from now on.
    def log_in(password)
      @renewal = nil
      @told_in = Process.pid
      password = C.string(@ask ? @ask.call : password, "password") if password
      user = @user && C.string(@user, "user")
      is_told = call("RedLock_SetCredentials", user.to_i, password.to_i)
    ensure
      some_server_failed unless is_told # an exception, of whatever kind, is no answer: it is asked again
    end

    # Asks again for a password, in a new process, and after a call in which a server could not take part, because
    # that server may want another password by now. If no new password is available, the old one stays, and the
    # logger is told.
    def renew_log_in
      return unless @ask && @open

      log_in(@ask) if @told_in != Process.pid || (@renewal && @renewal <= now)
    rescue Closed
      false
    rescue StandardError => e
      # Not its message, which may contain anything.
      @lines.push([WARN, "the password function failed, the old password stays: #{e.class}"]) if @logger
    end

    def some_server_failed
      @renewal ||= now + 1 if @ask
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def inspect
      "#<#{self.class}>"
    end

    private

    # Whether log lines are wanted.
    def listens?
      @logger || @ask
    end

    def watch_over(call)
      @watching.synchronize do
        begin_to_watch
        @watched[call] = true
      end
    end

    # From now on a thread receives the events for fibers and kept locks, while no other thread waits for its own
    # call. The thread ends when all of these have been over for a moment. (It refers to what is in scope here, so it
    # must not begin where a lease is.)
    def begin_to_watch
      return if @watcher&.alive?

      @watched.clear # they belong to the parent
      @watcher = Thread.new { watch }
    end

    def watch
      Thread.current.name = "redlock"
      Thread.current.report_on_exception = false
      Thread.handle_interrupt(Object => :immediate) do # whatever the thread that started it has masked
        use(leaving: true) { stand_by }
      end
    end

    def stand_by
      idle = Call.new
      until idle?
        @events.stand_by(idle) { look_around }
        look_after_program
      end
    end

    # Runs code of the program. Whatever it raises, this thread goes on: others rely on it.
    def look_after_program
      renew_log_in
      tell if listens?
    rescue Exception => e # rubocop:disable Lint/RescueException
      end_a_thread_with(e)
    end

    # Tells the program of an exception that no call can raise, as Ruby tells of one that ends a thread.
    def end_a_thread_with(error)
      Thread.new { raise error }
    end

    # Whether there was nothing to watch over for a moment. If so, the thread ends.
    def idle?
      @watching.synchronize do
        is_needed = !@watched.empty? || @events.keeps?
        @idle_since = is_needed ? nil : @idle_since || now
        is_idle = @idle_since && (closed? || now - @idle_since >= Events::PATIENCE)
        @watcher = @idle_since = nil if is_idle
        is_idle
      end
    end

    def ask_for_portraits(address, room, count)
      status = C.call("RedLock_Servers", address, room, count.to_i)
      C.check(status, C.words(C.call("RedLock_ErrorMessage", address)))
    end

    def portrait(info)
      text = C.method(:letters)
      us = info.round_trip_us
      ahead = info.clock_offset_us
      Server.new(
        name: text[info.name], connected: !info.connected.zero?, votes: !info.votes.zero?,
        words: text[info.words], round_trip: us.negative? ? nil : us / 1e6,
        clock_offset: ahead == -(2**63) ? nil : ahead / 1e6, version: text[info.version],
        role: text[info.role], run_id: text[info.run_id], keeps: text[info.keeps],
        eviction: text[info.eviction]
      )
    end

    # From the numbers of the struct in their order.
    def stats_of(numbers)
      outcomes = Array.new(6) { Outcomes.new(*numbers.shift(C::Structs::OUTCOMES)) }
      counts = numbers.shift(12)
      bounds = numbers.pop(C::Structs::BUCKETS - 1).map { |us| us / 1e6 }
      histograms = Array.new(4) do
        count, us, *buckets = numbers.shift(2 + C::Structs::BUCKETS)
        Histogram.new(count, us / 1e6, buckets, bounds)
      end
      Stats.new(**Stats.members.zip(outcomes + counts + histograms).to_h)
    end

    # What is to be done between two steps. Returns when to ask for a password.
    def look_around
      look_up_if_due
      take_lines if @ask
      @renewal
    end

    # Begins to look up the names of servers that may have moved, in a thread that ends with that: who waits for a call
    # must not wait for the system's resolver. (It refers to what is in scope here: see #begin_to_watch.)
    def look_up_if_due
      return if @driven_in == Process.pid || @resolver&.alive?
      return if C.call("RedLock_IsLookUpDue", address).zero?

      @resolver = Thread.new { look_up }
      nil
    rescue ThreadError
      @resolver = nil # the system gives no thread: a later step tries it again
    end

    # A manager that is closed meanwhile is freed when this has ended.
    def look_up
      Thread.current.name = "redlock-names"
      Thread.current.report_on_exception = false
      use(leaving: true) { |address| C.call("RedLock_LookUp", address) }
    end

    # Passes the lines that the library has kept to the logger. C does not call the logger: an exception of Timeout,
    # Thread#raise or a signal handler on the way back would leave the library in the middle of its work. These
    # exceptions wait for the end of this method, except for those of signal handlers.
    def tell
      return if Thread.current[:redlock_telling] # in the logger itself

      Thread.handle_interrupt(Undisturbed::MASKED) do
        Thread.current[:redlock_telling] = true
        take_lines
        while (line = @lines.shift)
          tell_line(*line)
        end
      ensure
        Thread.current[:redlock_telling] = nil
      end
    end

    def take_lines
      line = Fiddle::Pointer.malloc(LINE_BYTES, Fiddle::RUBY_FREE)
      until (level = C.call("RedLock_TakeLogLine", @handle.to_i, line.to_i, LINE_BYTES)).zero?
        some_server_failed if level == 1
        @lines.push([SEVERITIES.fetch(level, DEBUG), C.words(line)]) if @logger
      end
    end

    # A lock does not depend on the logger.
    def tell_line(severity, line)
      @logger&.call(severity, line)
    rescue StandardError => e
      end_a_thread_with(e)
    end

    def free_if_done(calls)
      return if @open || calls.positive? || @freed

      @freed = true
      @handle.free = nil
      C.call("RedLock_Free", @handle.to_i)
      @events.close
    end
  end
  private_constant :Servers
end
