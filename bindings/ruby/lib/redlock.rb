# frozen_string_literal: true

require "fiddle"
require "fiddle/import"
require "io/wait" unless IO.method_defined?(:wait_readable)

# Locks that are held on a majority of independent Redis or Valkey servers, through the C library of the same name:
#
#   locker = Redlock::Manager.new("127.0.0.1:6379", "127.0.0.1:6380", "127.0.0.1:6381")
#   locker.lock("report", ttl: 10) { |lease| ... }
#
# A job that may take longer than its lock can keep the lock alive: the lock is extended until the block ends. If it
# cannot be kept alive, the job learns this in time:
#
#   locker.lock("report", ttl: 10, keep_alive: true) do |lease|
#     pages.each { |page| lease.lost? ? break : write(page) }
#   end
#
# All times are in seconds, and may be fractions. The library is the file that REDLOCK_LIBRARY names, the file
# beside this one, or the file that the system's loader finds. This file needs Ruby 2.7 or later, and no gem, except
# that Fiddle comes with Ruby as a gem from 4.0 on, so a Gemfile must name it.
#
# Threads::   While a thread waits for a lock, or for servers, other threads run. Timeout, Thread#raise, Thread#kill
#             and the exceptions of signal handlers end a call on a lock at once, also if servers do not answer.
#             With the block form they never leave a lock behind: the block form waits for the release at its end,
#             as long as the timeouts allow. Manager#locked? and Manager#connect handle them only after they have
#             ended.
# Names::     A server that has been unreachable for 2 s may have got another address. Its name is looked up in a thread
#             that ends with that, while a call waits or a lock is kept alive. Neither calls nor Manager#close wait for
#             it. If a call waits and no lock is kept, the end of the program does: Ruby waits for its threads.
# Processes:: A manager that was made before a fork works in the parent and in its children, as under Puma or
#             Unicorn with a preloaded application. A lock belongs to the process that took it. In a child, calls on
#             it raise Redlock::Forked, and neither an exit nor the garbage collector releases it. Process.daemon is
#             a fork, too.
# Signals::   In a block of +trap+, Ruby locks no mutex. So calls there raise ThreadError, and change nothing. Only
#             Lease#held?, #lost? and #remaining and Manager#closed? work there. Begin a thread for anything else, or
#             raise an exception.
# Fibers::    With a Fiber scheduler (Ruby 3.1 or later), a call on a lock blocks only its own fiber.
# Ractors::   Only the main Ractor is supported. Manager.new raises Redlock::Error in any other, and a manager
#             cannot be sent there.
module Redlock
  # A call that did not succeed. The message is for a person: the answer of each server, and the count of the votes.
  # The status is the number that the C library returned, or nil if the library was not called.
  class Error < StandardError
    attr_reader :status

    def initialize(message = nil, status = nil)
      super(message)
      @status = status
    end
  end

  class Taken < Error; end           # somebody else holds the lock
  class Nested < Taken; end          # the block around this call holds the lock, and not both are reentrant
  class Unreachable < Error; end     # too few servers answered in time
  class TooSlow < Error; end         # the lock was granted, but no validity was left
  class Lost < Error; end            # the lock is not held, or no longer held
  class InvalidArgument < Error; end # the message names the fault
  class NoServers < Error; end       # no server was given
  class Cancelled < Error; end       # the call was cancelled
  class TooShort < Error; end        # the lock is held, but not for as long as #confirm requires
  class Forked < Error; end          # the lease belongs to the parent process
  class Internal < Error; end        # the message says what happened
  class Closed < Error; end          # the manager was closed

  ERRORS = {
    1 => Taken, 2 => Unreachable, 3 => TooSlow, 4 => Lost, 5 => Cancelled, 7 => TooShort,
    -1 => InvalidArgument, -2 => NoServers, -3 => Forked, -4 => Internal
  }.freeze
  private_constant :ERRORS

  # The state of one server, from Manager#servers.
  #
  # name::       host:port, or the path of its socket
  # connected::  whether there is a connection
  # votes::      whether its grants count
  # words::      why it is not connected, or does not vote
  # round_trip:: how many seconds its last answer took; nil if there was none yet
  # clock_offset:: how many seconds its clock is ahead of this machine's clock; nil if that is not known
  #
  # What the server said about itself when it was last asked. Empty if it did not say it, or if the user may not
  # ask:
  #
  # version::  the program and its version
  # role::     "primary", or "replica" or "sentinel", which cannot vote
  # run_id::   changes with each start
  # keeps::    which of its data outlives its process: "log, synced always", ..., "no log"
  # eviction:: its maxmemory-policy
  Server = Struct.new(:name, :connected, :votes, :words, :round_trip, :clock_offset, :version, :role, :run_id,
                      :keeps, :eviction, keyword_init: true)

  # What the servers report about a resource, from Manager#info.
  #
  # locked::    whether any client holds it
  # remaining:: how many seconds it is still held, if it is neither extended nor unlocked; Float::INFINITY: forever
  # shared::    whether several can hold it at the same time
  # readers::   how many hold it
  # words::     which servers could not answer, and why
  # permits_taken:: for a semaphore: how many permits are taken; it is locked if all are taken
  Info = Struct.new(:locked, :remaining, :shared, :readers, :words, :permits_taken, keyword_init: true)

  # The counters of a manager since it was made, from Manager#stats. Counts only grow; +waiting+ and +kept+ are
  # current numbers.
  #
  # acquisitions, extensions, confirmations, releases, adoptions, inspections:: Outcomes of the calls of that kind
  # detached::    locks that were given away
  # attempts::    how often the servers were asked for a lock; all at once counts as one
  # waits::       calls that had to wait for a lock, even if only for a moment
  # renewed, not_renewed:: extensions of locks that are kept alive, and those that failed and were tried again
  # kept_lost::   locks that could not be kept alive
  # requests::    requests that were sent, to all servers together
  # connections, connections_lost, connections_failed:: those that could be used, that were lost, and that failed
  # acquire_time, wait_time, hold_time, round_trip:: each a Histogram
  Stats = Struct.new(:acquisitions, :extensions, :confirmations, :releases, :adoptions, :inspections, :detached,
                     :attempts, :waits, :renewed, :not_renewed, :kept_lost, :requests, :connections,
                     :connections_lost, :connections_failed, :waiting, :kept, :acquire_time, :wait_time, :hold_time,
                     :round_trip, keyword_init: true)

  # The number of calls of one kind, by outcome.
  Outcomes = Struct.new(:ok, :taken, :unreachable, :too_slow, :lost, :too_short, :cancelled, :failed)

  # A histogram of durations: their number, and their sum in seconds. +buckets+ has the number of durations in each
  # bucket: at most the seconds at the same index in +bounds+, and more than the bound before it. The last bucket
  # has no bound.
  Histogram = Struct.new(:total, :seconds, :buckets, :bounds)

  # The C functions.
  module C
    # The interface version that this file needs. Below 1.0 the interface may change with the second number.
    INTERFACE = "0.2"
    NAMES = %w[libredlock.so.0.2 libredlock.so libredlock.dylib].freeze

    # Pointers are passed as integers. If Fiddle takes the address of a pointer itself, it swallows an exception
    # that Timeout or Thread#raise sends at that moment.
    ADDRESS = Fiddle::TYPE_UINTPTR_T
    POINTER = Fiddle::TYPE_VOIDP
    MS = Fiddle::TYPE_LONG_LONG
    INT = Fiddle::TYPE_INT
    BOOL = -Fiddle::TYPE_CHAR

    # RedLockAcquireOptions, RedLockEvent, RedLockServerInfo and RedLockInfo.
    module Structs
      extend Fiddle::Importer
      Options = struct([
        "size_t size", "uintptr_t resource", "size_t resource_size", "uintptr_t resources",
        "size_t resource_count", "long long ttl_ms", "long long wait_ms", "int tries", "int mode",
        "int permits", "int keep_alive"
      ])
      Event = struct([
        "size_t size", "int kind", "int status", "uintptr_t lease", "uintptr_t user_data",
        "long long remaining_ms"
      ])
      Server = struct([
        "size_t size", "int connected", "int votes", "long long round_trip_us",
        "long long clock_offset_us", "char name[256]", "char words[512]", "char version[32]", "char role[16]", "char run_id[48]", "char keeps[32]",
        "char eviction[32]"
      ])
      Info = struct([
        "size_t size", "int locked", "int mode", "long long remaining_ms", "long long readers",
        "char words[1024]", "int permits", "int permits_taken"
      ])
      Count = struct(["size_t value"])

      # RedLockStats: numbers of eight bytes, one after the other.
      OUTCOMES = 8
      BUCKETS = 21
      STATS_WORDS = 1 + (6 * OUTCOMES) + 12 + (4 * (2 + BUCKETS)) + BUCKETS - 1
    end

    # The mode in which several callers may hold a lock.
    SHARED = 1

    # A result of a call that was cancelled, a result of RedLock_NextEvent, and the kinds of events.
    CANCELLED = 5
    RUBY = 5 # REDLOCK_LANGUAGE_RUBY
    NO_EVENT = 6
    DONE = 0
    LOST = 1

    # These return a status. Other Ruby threads run during the call.
    CALLS = {
      "RedLock_AddServerUrl" => [ADDRESS, ADDRESS, INT],
      "RedLock_Connect" => [ADDRESS, MS],
      "RedLock_LookUp" => [ADDRESS],
      "RedLock_SetRetry" => [ADDRESS, INT, INT],
      "RedLock_SetTimeouts" => [ADDRESS, MS, MS],
      "RedLock_SetClockDriftFactor" => [ADDRESS, Fiddle::TYPE_DOUBLE],
      "RedLock_SetRestartGuard" => [ADDRESS, INT, MS, MS],
      "RedLock_SetFencing" => [ADDRESS, BOOL],
      "RedLock_SetTracing" => [ADDRESS, INT],
      "RedLock_SetWaking" => [ADDRESS, BOOL],
      "RedLock_SetLanguage" => [ADDRESS, INT],
      "RedLock_SetTlsCa" => [ADDRESS, ADDRESS],
      "RedLock_SetTlsCertificate" => [ADDRESS, ADDRESS, ADDRESS],
      "RedLock_SetTlsServerName" => [ADDRESS, ADDRESS],
      "RedLock_SetTlsInsecureSkipVerify" => [ADDRESS, BOOL],
      "RedLock_SetCredentials" => [ADDRESS, ADDRESS, ADDRESS],
      "RedLock_KeepLog" => [ADDRESS, INT],
      "RedLock_SetBackgroundThread" => [ADDRESS, BOOL],
      "RedLock_IsLocked" => [ADDRESS, ADDRESS, ADDRESS],
      "RedLock_Inspect" => [ADDRESS, ADDRESS, Fiddle::TYPE_SIZE_T, ADDRESS],
      "RedLock_NextEvent" => [ADDRESS, MS, ADDRESS]
    }.freeze

    # These neither wait nor ask servers. To let other threads run would take longer than the calls themselves.
    LOOKS = {
      "RedLock_Version" => [POINTER],
      "RedLock_New" => [POINTER],
      "RedLock_Free" => [Fiddle::TYPE_VOID, ADDRESS],
      "RedLock_ErrorMessage" => [POINTER, ADDRESS],
      "RedLock_IsLookUpDue" => [BOOL, ADDRESS],
      "RedLock_Descriptor" => [INT, ADDRESS],
      "RedLock_Servers" => [INT, ADDRESS, ADDRESS, ADDRESS],
      "RedLock_GetStats" => [INT, ADDRESS, ADDRESS],
      "RedLock_StatsText" => [Fiddle::TYPE_SIZE_T, ADDRESS, ADDRESS, Fiddle::TYPE_SIZE_T],
      "RedLock_SubmitAcquire" => [INT, ADDRESS, ADDRESS, ADDRESS, ADDRESS],
      "RedLock_SubmitAdopt" => [INT, ADDRESS, ADDRESS, ADDRESS, ADDRESS],
      "RedLock_Detach" => [INT, ADDRESS, ADDRESS, ADDRESS, Fiddle::TYPE_SIZE_T],
      "RedLock_SubmitDowngrade" => [INT, ADDRESS, ADDRESS, ADDRESS],
      "RedLock_SubmitExtend" => [INT, ADDRESS, ADDRESS, MS, ADDRESS],
      "RedLock_SubmitConfirm" => [INT, ADDRESS, ADDRESS, MS, ADDRESS],
      "RedLock_SubmitUnlock" => [INT, ADDRESS, ADDRESS, ADDRESS],
      "RedLock_SubmitUnlockAfter" => [INT, ADDRESS, ADDRESS, MS, ADDRESS],
      "RedLock_Cancel" => [INT, ADDRESS, ADDRESS],
      "RedLock_KeepAlive" => [INT, ADDRESS, ADDRESS, ADDRESS],
      "RedLockStatus_Name" => [POINTER, INT],
      "RedLock_TakeLogLine" => [INT, ADDRESS, ADDRESS, Fiddle::TYPE_SIZE_T],
      "RedLock_Retain" => [INT, ADDRESS],
      "RedLockLease_Levels" => [INT, ADDRESS],
      "RedLockLease_New" => [POINTER],
      "RedLockLease_Free" => [Fiddle::TYPE_VOID, ADDRESS],
      "RedLockLease_IsHeld" => [BOOL, ADDRESS],
      "RedLockLease_RemainingMs" => [MS, ADDRESS],
      "RedLockLease_ValidityMs" => [MS, ADDRESS],
      "RedLockLease_Resource" => [POINTER, ADDRESS],
      "RedLockLease_ResourceSize" => [Fiddle::TYPE_SIZE_T, ADDRESS],
      "RedLockLease_ResourceCount" => [Fiddle::TYPE_SIZE_T, ADDRESS],
      "RedLockLease_ResourceAt" => [POINTER, ADDRESS, Fiddle::TYPE_SIZE_T],
      "RedLockLease_Token" => [POINTER, ADDRESS],
      "RedLockLease_Mode" => [INT, ADDRESS],
      "RedLockLease_FencingToken" => [MS, ADDRESS],
      "RedLockLease_ErrorMessage" => [POINTER, ADDRESS]
    }.freeze

    # RedLock_NextEvent as a call that does not let other threads run, for servers whose names need no lookup.
    # Beside a computing thread, a thread that lets others run waits a tenth of a second for its next turn.
    LOOK_FOR_EVENT = :look_for_event

    class << self
      def load_functions
        library, name = open_library
        functions = {}
        LOOKS.each { |it, (result, *types)| functions[it] = bind(library, name, it, types, result, true) }
        CALLS.each { |it, types| functions[it] = bind(library, name, it, types, INT, false) }
        functions[LOOK_FOR_EVENT] = bind(library, name, "RedLock_NextEvent", CALLS["RedLock_NextEvent"], INT, true)
        functions.freeze
      end

      def call(function, *arguments)
        FUNCTIONS.fetch(function).call(*arguments)
      end

      # The message may be missing, because another thread's call can clear the message of a failed call.
      def check(status, words)
        return true if status.zero?

        words = words(call("RedLockStatus_Name", status)) if words.empty?
        raise ERRORS.fetch(status, Error).new(words, status)
      end

      def words(pointer)
        pointer.to_s.dup.force_encoding(Encoding::UTF_8).scrub
      end

      # The text in a field of a struct.
      def letters(room)
        room.take_while(&:nonzero?).pack("c*").force_encoding(Encoding::UTF_8).scrub
      end

      # A handle that the garbage collector frees. The C functions for that do no I/O, and in a forked child they
      # touch nothing that belongs to the parent.
      def handle(type)
        handle = call("#{type}_New")
        raise NoMemoryError, "#{type}_New" if handle.null?

        handle.free = FUNCTIONS.fetch("#{type}_Free").to_i
        handle
      end

      # A string for C, in memory that does not move. Refuses other objects: most have some text, which names the
      # object and not what the caller means. Refuses a string that C would cut short: "a\0b" must not lock "a".
      def string(text, what)
        is_text = text.is_a?(String) || text.is_a?(Symbol)
        raise TypeError, "#{what} must be a String, not #{text.class}" unless is_text

        bytes = text.to_s.b
        raise InvalidArgument.new("#{what} contains a NUL byte", -1) if bytes.include?("\0")

        copy = Fiddle::Pointer.malloc(bytes.bytesize + 1, Fiddle::RUBY_FREE)
        copy[0, bytes.bytesize + 1] = bytes << "\0"
        copy
      end

      # The name of a resource. Another object is refused: its text may differ from process to process, and then the
      # lock would keep nobody out.
      def name(resource)
        case resource
        when String, Symbol, Integer then resource.to_s
        else raise TypeError, "resource must be a String, a Symbol or an Integer, not #{resource.class}"
        end
      end

      # Whether a server is given by a name, which needs a lookup.
      def named?(server)
        # Sentinels may report a master by name, or be named themselves.
        return true if /\A[a-z]+[-+]sentinel:/i.match?(server)

        host = server[%r{\A(?:[^/]*://)?(?:[^/]*@)?(\[[^\]]*\]|[^:/]*)}, 1]
        !/\A(\[.*\]|[\d.]*)\z/.match?(host)
      end

      # Limits the number to the range of a C int, and leaves it to the library to refuse it.
      def count(permits)
        Integer(permits).clamp(-2**31, 2**31 - 1)
      end

      # Milliseconds; a small value never becomes 0, because 0 has another meaning.
      def ms(value, what)
        seconds = seconds(value, what)
        ms = (seconds * 1000).clamp(-(2**62), 2**62).round
        ms.zero? && !seconds.zero? ? (seconds <=> 0) : ms
      end

      def seconds(value, what)
        # A Time is a moment, and not how long something takes.
        is_time = value.respond_to?(:to_f) && !value.nil? && !value.is_a?(String) && !value.is_a?(Time)
        raise TypeError, "#{what} must be a number of seconds, not #{value.inspect}" unless is_time

        seconds = value.to_f
        raise InvalidArgument.new("#{what} is not a number", -1) if seconds.nan?

        seconds
      end

      private

      def open_library
        named = ENV["REDLOCK_LIBRARY"]
        failures = (named ? [named] : names).map do |name|
          library = Fiddle.dlopen(name)
          check_version(library, name)
          return [library, name]
        rescue Fiddle::DLError => e
          e.message
        end
        raise LoadError, "redlock library not found: install it, or set REDLOCK_LIBRARY to its path: #{failures.join('; ')}"
      end

      # A gem contains the library.
      def names
        NAMES.map { |name| File.join(__dir__, name) }.select { |file| File.exist?(file) } + NAMES
      end

      def check_version(library, name)
        version = bind(library, name, "RedLock_Version", [], POINTER, true).call.to_s
        return if version.start_with?("#{INTERFACE}.")

        raise LoadError, "#{name} is redlock #{version}, but this file needs #{INTERFACE}"
      end

      def bind(library, name, function, types, result, is_look)
        address = library[function]
      rescue Fiddle::DLError
        raise LoadError, "#{name} has no #{function}: it is older than this file, or not redlock"
      else
        function_at(address, types, result, is_look)
      end

      def function_at(address, types, result, is_look)
        Fiddle::Function.new(address, types, result, need_gvl: is_look)
      rescue ArgumentError
        Fiddle::Function.new(address, types, result) # Ruby 2.7 lets other threads run in every call
      end
    end

    FUNCTIONS = load_functions
  end
  private_constant :C

  # Code that must run to its end, whatever exceptions come from outside.
  module Undisturbed # :nodoc:
    MASKED = { Object => :never }.freeze
    # This many signals, one after the other, do not stop the block.
    TRIES = 20

    # Runs the block, and runs it again if an exception interrupted it. Thread#kill, Thread#raise and Timeout wait
    # for its end. The exceptions of signal handlers do not wait; they are raised when the block has ended.
    def self.run
      interruptions = []
      Thread.handle_interrupt(MASKED) do
        yield
      rescue Exception => e # rubocop:disable Lint/RescueException
        interruptions.push(e)
        retry if interruptions.size < TRIES
      end
      raise interruptions.first unless interruptions.empty?
    end
  end
  private_constant :Undisturbed

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

    def initialize(manager, looks_up_names)
      @manager = manager
      @look = looks_up_names ? "RedLock_NextEvent" : C::LOOK_FOR_EVENT
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
          hand_on while (status = C.call(@look, @manager.to_i, 0, @event.to_i)).zero?
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

    def initialize(user, password, looks_up_names)
      @handle = C.handle("RedLock")
      @events = Events.new(@handle, looks_up_names)
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

  # Takes locks on one set of servers. Threads may share it, and processes forked later may use it.
  class Manager
    # The index of each name is its number in C.
    GUARDS = %i[on strict off durable].freeze
    # Which events of locks a logger receives. The index of each is its number in C.
    TRACES = [nil, :events, :resources].freeze
    private_constant :GUARDS, :TRACES

    # Servers are host:port, or URLs such as redis://user:password@host:6379/0, rediss://host:6379,
    # unix:///run/redis.sock, or redis-sentinel://host,host2/master for a master that Sentinels watch. All programs
    # that must exclude each other must name the same servers.
    #
    # user::, password:: log-in for servers whose URL has none. A password may be anything that responds to +call+.
    #                    It is called when the manager is made, in a forked child, and a second after a server
    #                    failed, so the password may change. If it raises a StandardError in the first of these
    #                    calls, Manager.new does. Later, the old password stays, the logger is told, and it is
    #                    called again after a second. Any other exception goes on to the caller, and nothing stays
    #                    locked.
    # tls::              true, or a Hash: servers that are given as host:port are reached over TLS, like those of
    #                    rediss://. Its keys, all optional: +ca+, +certificate+ and +key+ name PEM files (without
    #                    +ca+ the system's roots are trusted); +server_name+ is the name that certificates must
    #                    have, if not the host; +insecure_skip_verify+ true accepts any certificate.
    # retry_delay::      mean pause between two attempts; each pause is random. While locks change hands, the pauses
    #                    are shorter.
    # connect_timeout::  timeout for connecting to a server
    # reply_timeout::    timeout for a server's reply; 0 is a twentieth of the ttl, 0.025 to 0.5
    # drift_factor::     how much faster a server's clock may run than this machine's
    # restart_guard::    how the manager guards against servers that lose their memory, for example in a restart
    #                    without their data. With :on such servers have no vote until the locks that they may have
    #                    forgotten have ended. With :strict, servers that seem to be new also have no vote at first.
    #                    With :off every server that can be reached has a vote. With :durable it does, too, because
    #                    the program vouches that no server ever forgets.
    # longest_ttl::      the longest ttl that any client uses on these servers; nil: the ttl that is noted on the
    #                    servers
    # guard_cap::        the longest time that a server stays without a vote; nil: 600
    # fencing::          true: locks come with a fencing token, see Lease#fencing_token. All clients that lock the
    #                    resource must use it. The servers count in the key redlock:fence, so do not lock a
    #                    resource with this name.
    # waking::           false: waiting calls ask now and then, and releases wake no waiting clients. Otherwise
    #                    waiting calls are woken when another process releases the lock. The wait queue is in the
    #                    key that is named as the resource with :w appended, so do not lock a resource with such a
    #                    name.
    # logger::           as for #logger=
    # trace::            :events: the logger also receives the events of locks, at the severity DEBUG, one line of
    #                    key=value pairs for each event. :resources: the same with resource names.
    def initialize(*servers, user: nil, password: nil, tls: nil, retry_delay: 0.2, connect_timeout: 1.5,
                   reply_timeout: 0, drift_factor: 0.01, restart_guard: :on, longest_ttl: nil, guard_cap: nil,
                   fencing: false, waking: true, logger: nil, trace: nil)
      refuse_ractors
      servers = servers.flatten
      raise NoServers.new("no server was given", -2) if servers.empty?

      @count = servers.size
      @servers = Servers.new(user, password, servers.any? { |server| C.named?(String(server)) })
      set("RedLock_SetLanguage", C::RUBY)
      set("RedLock_SetRetry", 3, C.ms(retry_delay, "retry_delay").clamp(-1, 2**31 - 1))
      timeouts = [C.ms(connect_timeout, "connect_timeout"), C.ms(reply_timeout, "reply_timeout")]
      set("RedLock_SetTimeouts", *timeouts)
      set("RedLock_SetClockDriftFactor", Float(drift_factor))
      @servers.drift = Float(drift_factor)
      guard(restart_guard, longest_ttl || 0, guard_cap || 0)
      set("RedLock_SetFencing", 1) if fencing
      trace(trace) if trace
      set("RedLock_SetWaking", 0) unless waking
      use_tls(**tls.transform_keys(&:to_sym)) if tls && tls != true
      @servers.log_in(password) if user || password
      servers.each { |server| add(String(server), tls ? "rediss" : "redis") }
      self.logger = logger if logger || password.respond_to?(:call) # log lines tell when to ask for the password
    end

    # Takes the lock for +ttl+ seconds and runs the block, and releases the lock however the block ends. If the
    # block ended normally but the lock had expired before, Lost is raised. Without a block it returns the lease,
    # which the caller must unlock. An exception from outside (Timeout, Thread#raise) that comes before the caller
    # has the lease loses the lock until its ttl expires.
    #
    # +wait+ is how many seconds to wait at most for a lock that is not available: 0 is one attempt, nil means no
    # limit. After that time, the result of the last attempt is raised: Taken, Unreachable or TooSlow.
    #
    # +keep_alive+ keeps the lock alive, as by Lease#keep_alive.
    #
    # +shared+: other callers that want the lock shared can hold it at the same time, and no caller can hold it
    # exclusively. While a caller waits for the exclusive lock, later callers that want it shared do not get it. A
    # shared lock has no fencing token. Besides the resource, the servers use the keys with :r and :i appended to
    # its name, so do not lock resources with such names.
    #
    # +resource+ is a String, a Symbol or an Integer; anything else raises TypeError. It may be an array of them, as in
    # <tt>lock(%w[a b], ttl: 10)</tt>. Its names are locked at once, all or none,
    # by one lock. It is extended and lost as a whole, and excludes every caller that wants one of them. 1 to 128
    # different names in any order. The message tells by its number which one was in the way.
    #
    # +reentrant+ lets this thread (or fiber) take the lock again while it holds it, if that call asks for it, too.
    # Each call has its own Lease, and only the last unlock of them asks servers. An inner lock that needs more time
    # than is left extends the lock, with one attempt. If the lock is kept alive and its ttl is long enough, no
    # extension is needed. A lost lock raises Lost at every level. Without +reentrant+, a call in a block for the
    # lock of that block raises Nested at once, unless both are shared.
    def lock(resource, ttl:, wait: 5, keep_alive: false, reentrant: false, shared: false, &block)
      a_lease(resource, ttl, reentrant, shared).__send__(:take, wait, keep_alive, &block)
    end

    # As #lock with one attempt, but if the lock is held it returns nil, and runs no block.
    def try_lock(resource, ttl:, keep_alive: false, reentrant: false, shared: false, &block)
      lease = a_lease(resource, ttl, reentrant, shared)
      lease.__send__(:take, 0, keep_alive, &block)
    rescue Taken => e
      raise unless lease.__send__(:refused_by?, e) # the exception comes from the block
    end

    # A resource that several callers can hold at the same time, in all programs with the same servers: a Semaphore.
    # +permits+ is how many callers can hold it at the same time. It is from 1 to 256, and must be the same for all
    # users of the resource. If the numbers differ, the greatest applies. A caller that locks the resource uses one
    # permit. Each permit lasts for +ttl+ seconds unless it is extended or unlocked; with +keep_alive+ it is kept
    # alive until it is unlocked.
    #
    #   api = manager.semaphore("api", permits: 8, ttl: 10)
    #   api.acquire { |lease| ... }
    def semaphore(resource, permits:, ttl:, keep_alive: false)
      Semaphore.__send__(:new, self, @servers, resource, Integer(permits), ttl, keep_alive)
    end

    # Takes over a lock that was given away with Lease#detach, in this process or another. The servers are asked
    # whether the lock is there. Lost: the lock has ended. Unreachable: too few servers answered, and the caller may
    # try again. With a block, the lock is released when the block ends, and the value of the block is returned.
    # Without a block, the Lease is returned. Lease#extend without an argument makes the lock last as long as it
    # lasted when it was adopted.
    #
    # Adopt a ticket only once. A second adopter shares the lock, as threads that share a lease do, and the first to
    # unlock it releases it for both.
    def adopt(ticket, keep_alive: false, &block)
      Lease.__send__(:new, @servers, "", 0).__send__(:take_over, ticket, keep_alive, &block)
    end

    # Asks the servers whether any client holds the resource. The answer may be out of date when it arrives: to get
    # a lock, take it without asking first.
    def locked?(resource)
      answer = Fiddle::Pointer.malloc(1, Fiddle::RUBY_FREE)
      name = C.string(C.name(resource), "resource")
      @servers.renew_log_in
      set("RedLock_IsLocked", name.to_i, answer.to_i)
      answer[0] != 0
    end

    # Asks the servers whether any client holds the resource, and for how long it is still held: an Info. This finds
    # the lock of any client, and changes nothing. The answer may be out of date when it arrives: to get a lock,
    # take it without asking first. With +permits+, the number of permits of a semaphore: also says how many permits
    # are taken.
    def info(resource, permits: 0)
      found = C::Structs::Info.malloc(Fiddle::RUBY_FREE)
      found.size = C::Structs::Info.size
      found.permits = C.count(permits)
      name = C.string(C.name(resource), "resource")
      @servers.renew_log_in
      set("RedLock_Inspect", name.to_i, 0, found.to_i)
      info_of(found)
    end

    # Connects now instead of at the first lock; returns when a quorum of the servers is connected. Returns a
    # message about the servers that are not connected, and why: a name may be misspelled. The message is empty if
    # all are connected. If there is no quorum, Unreachable is raised.
    def connect(timeout: 0)
      @servers.renew_log_in
      set("RedLock_Connect", C.ms(timeout, "timeout"))
    end

    # What is known of each server, in the order in which the servers were given: an array of Server. No server is
    # asked, and the call does not wait.
    def servers
      @servers.portraits
    end

    # The counters since the manager was made: Stats. No server is asked, and the call does not wait.
    def stats
      @servers.stats
    end

    # The counters and the state of each server as text for Prometheus; content type "text/plain; version=0.0.4".
    def stats_text
      @servers.stats_text
    end

    # Sets the logger, which is called when servers are lost, refuse or come back; nil: no logger. It is a Logger,
    # or responds to +call+ with a severity and a line of text. The severities are those of Logger: WARN for a
    # server fault, INFO for a repaired fault. It is called on the thread whose call met the fault, at the end of
    # that call, or on a thread of its own while locks are only kept alive. It may use this manager. Timeout,
    # Thread#raise and Thread#kill wait for its end. The text contains neither a password nor a token.
    #
    # A StandardError that it raises does not change the result of the call. Ruby tells of it as of an exception that
    # has ended a thread: see Thread.report_on_exception. Any other exception, such as an Interrupt, goes on to the
    # caller; if the call was to take a lock, nothing stays locked.
    def logger=(logger)
      @servers.logger = logger
    end

    # Ends the calls on locks that are under way: they raise Closed at once, and take no lock. A new call raises
    # Closed, too. Held locks stay held, a lock that is kept alive is kept, and both can still be unlocked. An unlock
    # that is under way is finished, and so are #locked?, #info and #connect. The connections are closed when the
    # last lease is unlocked. A manager that nothing refers to any more is closed, too.
    def close
      @servers.close
    end

    def closed?
      @servers.closed?
    end

    def inspect # :nodoc:
      "#<#{self.class} of #{@count} servers#{', closed' if closed?}>"
    end

    private

    def a_lease(resource, ttl, reentrant, shared)
      both = "shared and reentrant exclude each other"
      raise InvalidArgument.new(both, -1) if reentrant && shared

      (reentrant ? Level : Lease).__send__(:new, @servers, resource, ttl, shared: shared)
    end

    # Fiddle, and error messages, do not work in other Ractors, so this raises an error at once.
    def refuse_ractors
      return if !defined?(Ractor) || Ractor.current == Ractor.main

      raise Error, "redlock works in the main Ractor only"
    end

    def info_of(found)
      ms = found.remaining_ms
      Info.new(
        locked: !found.locked.zero?, remaining: ms.negative? ? Float::INFINITY : ms / 1000.0,
        shared: found.mode == C::SHARED, readers: found.readers, words: C.letters(found.words),
        permits_taken: found.permits_taken
      )
    end

    def set(function, *arguments)
      @servers.call(function, *arguments)
    end

    def trace(what)
      number = TRACES.index(what)
      raise InvalidArgument.new("trace is #{what.inspect}: it must be one of #{TRACES.inspect}", -1) unless number

      set("RedLock_SetTracing", number)
    end

    def guard(mode, longest_ttl, cap)
      number = GUARDS.index(mode)
      unless number
        raise InvalidArgument.new("restart_guard is #{mode.inspect}: it must be one of #{GUARDS.inspect}", -1)
      end

      set("RedLock_SetRestartGuard", number, C.ms(longest_ttl, "longest_ttl"), C.ms(cap, "guard_cap"))
    end

    def add(server, scheme)
      url = C.string(server.include?("://") ? server : "#{scheme}://#{server}", "server")
      set("RedLock_AddServerUrl", url.to_i, 0)
    end

    def use_tls(ca: nil, certificate: nil, key: nil, server_name: nil, insecure_skip_verify: false)
      named = { "tls.ca" => ca, "tls.certificate" => certificate, "tls.key" => key }
      files = named.map { |name, file| file && C.string(File.path(file), name) }
      set("RedLock_SetTlsCa", files[0].to_i) if ca
      set("RedLock_SetTlsCertificate", files[1].to_i, files[2].to_i) if certificate || key
      if server_name
        name = C.string(server_name, "tls.server_name")
        set("RedLock_SetTlsServerName", name.to_i)
      end
      set("RedLock_SetTlsInsecureSkipVerify", 1) if insecure_skip_verify
    end
  end

  # A resource that several callers can hold at the same time, as Manager#semaphore returns it. Threads and fibers
  # may share it, and each of them may hold several permits. A permit is a Lease.
  class Semaphore
    private_class_method :new

    # The name, as it was given, and the number of permits.
    attr_reader :resource, :permits

    def initialize(manager, servers, resource, permits, ttl, keep_alive) # :nodoc:
      raise InvalidArgument.new("permits is #{permits}: it must be 1 to 256", -1) if permits < 1

      @manager = manager
      @servers = servers
      @resource = resource
      @permits = permits
      @ttl = ttl
      @keep_alive = keep_alive
    end

    # Takes a permit and runs the block, and unlocks the permit however the block ends; without a block it returns
    # the Lease. +wait+ and the exceptions are as for Manager#lock.
    def acquire(wait: 5, &block)
      lease.__send__(:take, wait, @keep_alive, &block)
    end

    # As #acquire with one attempt, but if all permits are taken it returns nil, and runs no block.
    def try_acquire(&block)
      lease = self.lease
      lease.__send__(:take, 0, @keep_alive, &block)
    rescue Taken => e
      raise unless lease.__send__(:refused_by?, e) # the exception comes from the block
    end

    # Asks the servers how many permits are taken. The answer may be out of date when it arrives.
    def taken
      @manager.info(@resource, permits: @permits).permits_taken
    end

    def inspect # :nodoc:
      "#<#{self.class} #{@resource.inspect} of #{@permits} permits>"
    end

    protected

    def lease
      Lease.__send__(:new, @servers, @resource, @ttl, permits: C.count(@permits))
    end
  end

  # One lock. It expires by itself, so check #remaining, or call #confirm, before a step that must not happen
  # without the lock. Threads may share it.
  class Lease
    private_class_method :new

    # The locked name, as it was given; the first of several.
    def resource
      @resources.first
    end

    # All locked names, as they were given: one, or several.
    attr_reader :resources

    # The message of the last call on this lease. After a success: which servers could not take part, and why; empty
    # if all could. After a failure: the message of the exception.
    attr_reader :message

    def initialize(servers, resource, ttl, permits: 0, shared: false) # :nodoc:
      @servers = servers
      @wants_shared = shared ? true : false
      @permits = permits # of the semaphore, if it is one
      names = resource.is_a?(Array) ? resource : [resource]
      raise InvalidArgument.new("resource is empty: give at least one name", -1) if names.empty?

      self.names = names.map { |name| C.name(name).dup.freeze }
      @ttl = ttl
      @ttl_ms = C.ms(ttl, "ttl")
      @handle = C.handle("RedLockLease")
      @calling = Mutex.new # held for a call and the reading of its message
      @unlocked = @released = @lost = @is_of_block = false
      @watching = Mutex.new
      @on_lost = []
      @message = ""
      @holds = []
    end

    # The body of Manager#lock.
    private def take(wait, keeps, &block)
      refuse_nested
      have(-> { acquire(wait) }, keeps, &block)
    end

    # The body of Manager#adopt.
    private def take_over(ticket, keeps, &block)
      have(-> { adopt(ticket) }, keeps, &block)
    end

    # Whether a block has the lock, and not a caller.
    protected def of_block?
      @is_of_block
    end

    # Takes the lock with +by+, and holds it for the length of the block if there is one.
    private def have(by, keeps, &block)
      @is_of_block = !block.nil?
      hold_on
      by.call
      keep_alive if keeps
      return (@handed_out = self) unless block

      result = as_innermost(&block)
      finish
      result
    ensure
      # The exception of a signal handler may come before #release has masked exceptions, and so may the next one.
      begin
        release
      ensure
        begin
          release
        ensure
          release
        end
      end
    end

    # Whether this is the exception that refused the lock, and not one from the block.
    private def refused_by?(error)
      error.equal?(@refusal)
    end

    # Makes the lock last for +ttl+ from now on. If it lasts longer than that, it is unchanged: an extension never
    # shortens a lock. Lost: the lock had ended. Unreachable: too few servers answered, and a valid lock stays valid
    # until its old expiry.
    def extend(ttl: @ttl)
      call("RedLock_SubmitExtend", @handle.to_i, C.ms(ttl, "ttl"))
    end

    # As #extend, but makes the lock valid for this many seconds longer than now.
    def extend_by(additional)
      more_ms = C.ms(additional, "additional")
      raise InvalidArgument.new("additional must be more than 0", -1) unless more_ms.positive?

      ttl_ms = ttl_ms_for(C.call("RedLockLease_RemainingMs", @handle.to_i) + more_ms)
      call("RedLock_SubmitExtend", @handle.to_i, ttl_ms)
    end

    # Whether others can hold the lock at the same time.
    def shared?
      C.call("RedLockLease_Mode", @handle.to_i) == C::SHARED
    end

    # Makes an exclusive lock shared; no other client can have held it exclusively in between. The reverse is not
    # possible. Lost: the lock had ended. Unreachable: too few servers answered. The lock is then still held until
    # its old expiry, as a shared lock if #shared? says so, and the caller may call this again.
    def downgrade
      call("RedLock_SubmitDowngrade", @handle.to_i)
    end

    # Asks the servers whether this lease still holds its lock, for at least so many seconds. Lost: the lock is not
    # held. TooShort: it is held, but not for that long.
    def confirm(least: 0)
      call("RedLock_SubmitConfirm", @handle.to_i, C.ms(least, "least"))
    end

    # Keeps the lock alive until it is unlocked. The library extends it, with its last ttl, whenever a third of that
    # ttl has passed, on a thread of its own that no Ruby code delays. If the lock cannot be kept alive, #lost? and
    # #on_lost report this while at least a tenth of the ttl is left, unless somebody took the lock away. The lock
    # ends with its process, at the latest one ttl after it. But it is kept alive even if nothing refers to the
    # lease any more, except for a block that was left without its end, as that of an Enumerator that was dropped.
    # Lost: the lock is not held.
    def keep_alive
      @servers.use do |address|
        @calling.synchronize do
          settle(address)
          @servers.have_driver
          is_new = @servers.keep(self)
          take_status(C.call("RedLock_KeepAlive", address, @handle.to_i, object_id))
        rescue Error
          @servers.keep_no_more(self) if is_new
          raise
        end
      end
    end

    # Gives the lock away and returns a ticket. Another process, or another manager, adopts it: see Manager#adopt.
    # The lease then holds nothing, and a block releases nothing. Until the lock is adopted, nobody extends it, and
    # it expires after its ttl. No server is asked. Lost: the lock had ended.
    #
    # The ticket is as secret as the token, which it contains. Pass it through a pipe or the environment, not as an
    # argument of a program, which everybody can see.
    def detach
      size = 128 + ((@names.sum { |name| name.size + 2 } + 2) / 3 * 4)
      room = Fiddle::Pointer.malloc(size, Fiddle::RUBY_FREE)
      @servers.use(leaving: true) do |address|
        @calling.synchronize do
          settle(address)
          take_status(C.call("RedLock_Detach", address, @handle.to_i, room.to_i, size))
          @unlocked = true
        end
      end
      let_go
      C.words(room)
    end

    # Whether the lock has ended although it was not unlocked, or cannot be kept alive. Then the protected work must
    # stop within #remaining.
    def lost?
      @lost || (!@unlocked && !held?)
    end

    # Calls the block once, on a thread of its own, when a lock that is kept alive can no longer be kept; at once if
    # that is already known. The argument of the block is how many seconds the lock is still valid. To interrupt the
    # job itself:
    #
    #   job = Thread.current
    #   lease.on_lost { job.raise(Redlock::Lost) }
    def on_lost(&block)
      raise ArgumentError, "no block given" unless block

      @watching.synchronize { @on_lost.push(block) }
      tell_of_loss if @lost
      self
    end

    private def be_lost
      @lost = true
      tell_of_loss
    end

    # Ends the call if it is the one that is under way, and no unlock.
    private def cancel(call)
      C.call("RedLock_Cancel", @servers.address, @handle.to_i) if call.lease && call.equal?(@call)
    end

    # Releases the lock. Lost: the lock had already ended, and no lock of another holder was changed. Unreachable:
    # the release did not reach some servers. The lock expires there, or another call of this releases it.
    #
    # With +hold_at_least+, this lease is unlocked, but others are kept out until so many seconds after the lock was
    # taken, its ttl at most. It is for a job that must run once on machines whose clocks differ: a machine that is late
    # finds the lock taken. InvalidArgument, and the lock is still held: the time is longer than the ttl, or the lock is
    # shared or a permit.
    def unlock(hold_at_least: nil)
      least_ms = C.ms(hold_at_least, "hold_at_least") unless hold_at_least.nil?
      # Once the lock is being unlocked, no loss is reported. So a lock that had already ended is reported before.
      be_lost if !@unlocked && !@on_lost.empty? && !held?
      @unlocked = true
      submit_unlock(least_ms)
    rescue InvalidArgument
      @unlocked = false
      raise
    rescue Unreachable
      is_left = true # on some servers
      raise
    ensure
      @servers.keep_no_more(self) unless held?
      let_go unless is_left || held?
    end

    # How many seconds the lock is valid from now on; 0 if it is not valid.
    def remaining
      C.call("RedLockLease_RemainingMs", @handle.to_i) / 1000.0
    end

    # Whether the lock is held and valid now, by this machine's clock.
    def held?
      C.call("RedLockLease_IsHeld", @handle.to_i) != 0
    end

    # The value of the key on the servers; empty if the lease holds no lock. Keep it secret: anybody who knows it
    # can release the lock. Nothing else shows it.
    def token
      @calling.synchronize { C.words(C.call("RedLockLease_Token", @handle.to_i)) }
    end

    # With <tt>fencing: true</tt>, a number that is greater than those of all earlier locks of the same resource;
    # else nil. Pass it with each write to the system that the lock protects. That system must refuse a number that
    # is less than the greatest it has seen, as a database does with <tt>UPDATE ... WHERE fence <= :token</tt>. Then
    # a holder that was paused beyond the end of its lock cannot undo what the next holder wrote. The number does
    # not change when the lock is extended. It stays available when the lock has expired or was lost, until it is
    # unlocked.
    def fencing_token
      token = C.call("RedLockLease_FencingToken", @handle.to_i)
      token unless token.zero?
    end

    def inspect # :nodoc:
      what = @resources.one? ? resource : @resources
      "#<#{self.class} of #{what.inspect}, valid for #{remaining} s>"
    end

    # The first resource that this lease holds and the other one wants; nil if there is none.
    protected def held_of(other)
      return unless @permits.zero? && other.servers.equal?(@servers) && held?

      index = @keys.index { |key| other.keys.include?(key) }
      index && @resources[index]
    end

    protected

    # The names as bytes: the same bytes in two encodings are one key, but two strings.
    attr_reader :keys

    attr_reader :servers

    private

    def names=(names)
      @resources = names.freeze
      @keys = names.map(&:b)
      @names = names.map { |name| C.string(name, "resource") }
    end

    def acquire(wait)
      wait_ms = wait.nil? ? -1 : C.ms(wait, "wait")
      raise InvalidArgument.new("wait is negative", -1) if wait && wait_ms.negative?

      @servers.renew_log_in
      options = options(wait_ms)
      call("RedLock_SubmitAcquire", options.to_i, @handle.to_i, patient: true)
    rescue Taken, Unreachable, TooSlow => e
      raise @refusal = e
    ensure
      options&.to_i # keeps it alive until C has read it
    end

    def adopt(ticket)
      text = C.string(ticket, "ticket")
      @servers.renew_log_in
      call("RedLock_SubmitAdopt", text.to_i, @handle.to_i, patient: true)
      self.names = adopted_names
      @ttl = ttl_ms_for(C.call("RedLockLease_ValidityMs", @handle.to_i)) / 1000.0
    ensure
      text&.to_i # keeps it alive until C has read it
    end

    # The ttl for this validity: with the allowance for drift, 2 ms for the precision of expiry, and a rounding.
    def ttl_ms_for(validity_ms)
      [((validity_ms + 3) / (1 - @servers.drift)).ceil, 10**15].min
    end

    def adopted_names
      count = C.call("RedLockLease_ResourceCount", @handle.to_i)
      names = (0...count).map { |at| C.call("RedLockLease_ResourceAt", @handle.to_i, at).to_s }
      if count == 1
        size = C.call("RedLockLease_ResourceSize", @handle.to_i)
        names = [C.call("RedLockLease_Resource", @handle.to_i)[0, size]]
      end
      names.map do |name|
        name.force_encoding(Encoding::UTF_8)
        (name.valid_encoding? ? name : name.b).freeze
      end
    end

    def options(wait_ms)
      options = C::Structs::Options.malloc(Fiddle::RUBY_FREE)
      options.to_ptr[0, C::Structs::Options.size] = "\0" * C::Structs::Options.size
      options.size = C::Structs::Options.size
      if @names.one?
        options.resource = @names.first.to_i
      else
        @addresses = Fiddle::Pointer[@names.map(&:to_i).pack("J*")] # C reads them during the call
        options.resources = @addresses.to_i
        options.resource_count = @names.size
      end
      options.ttl_ms = @ttl_ms
      options.wait_ms = wait_ms
      options.mode = C::SHARED if @wants_shared
      options.permits = @permits
      options
    end

    def submit_unlock(least_ms)
      if least_ms
        call("RedLock_SubmitUnlockAfter", @handle.to_i, least_ms, leaving: true)
      else
        call("RedLock_SubmitUnlock", @handle.to_i, leaving: true)
      end
    end

    # A manager that is closed meanwhile is not freed before #let_go.
    def hold_on
      @servers.enter
      @holds.push(true)
    end

    def let_go
      @servers.keep_no_more(self)
      @servers.leave if @holds.pop
    end

    # The leases of the blocks that this fiber is in.
    def innermost
      Thread.current[:redlock_leases] ||= []
    end

    def as_innermost
      leases = innermost
      leases.push(self)
      yield self
    ensure
      leases&.delete_if { |lease| lease.equal?(self) }
    end

    def refuse_nested
      return if @permits.positive?

      outer = innermost.reject { |lease| @wants_shared && lease.shared? }
      held = outer.filter_map { |lease| lease.held_of(self) }.first
      return unless held

      words = "the block around this call already holds #{held.inspect}: set reentrant: true on both calls to take it again"
      raise @refusal = Nested.new(words, 1)
    end

    # The end of a block that ended normally: raises Lost if the block ran without the lock.
    def finish
      unlock unless @unlocked
    rescue Unreachable
      false # the block held the lock to its end
    end

    def release
      Undisturbed.run do
        unless @handed_out || (@released && @holds.empty?)
          release_what_is_held unless @released
          let_go
        end
      end
    end

    def release_what_is_held
      settle_what_is_left
      unlock if held?
      @released = true
    rescue Error
      @released = true # the lock expires
    end

    # Submits a call and waits for its end.
    def call(function, *arguments, leaving: false, patient: false)
      was_held = held?
      @servers.use(leaving: leaving) do |address|
        @calling.synchronize do
          settle(address)
          take_status(begin
            @call = @servers.events.begin_call(leaving ? nil : self)
            status = C.call(function, address, *arguments, @call.object_id)
            cancel(@call) if @servers.closed?
            status.zero? ? @servers.wait_for(@call, patient: patient) : @call.end_with(status)
            @call.status
          ensure
            settle(address)
          end)
        end
      end
      @servers.check_open if patient # what was taken meanwhile is released
      be_in_time(was_held) unless leaving
      true
    end

    # A lock counts only if it is held when its caller gets the result. C cannot see how long the logger takes. The
    # lease of a lock that another thread has released meanwhile has no token.
    def be_in_time(was_held)
      @calling.synchronize do
        return if held? || C.call("RedLockLease_Token", @handle.to_i).to_s.empty?

        @message = "the lock ended before the program read the result of the call"
      end
      raise was_held ? Lost.new(@message, 4) : TooSlow.new(@message, 3)
    end

    def take_status(status)
      @message = C.words(C.call("RedLockLease_ErrorMessage", @handle.to_i))
      @servers.check_open if status == C::CANCELLED
      C.check(status, @message)
    end

    # Ends the call that is under way, if there is one, because the thread that waited for it was interrupted. The
    # event of the call comes at once. If no event comes, the call was never submitted.
    def settle(address)
      return unless @call

      unless @call.over?
        C.call("RedLock_Cancel", address, @handle.to_i)
        @servers.events.take
      end
      @servers.events.forget(@call)
      @call = nil
    end

    def settle_what_is_left
      @servers.use(leaving: true) { |address| @calling.synchronize { settle(address) } } if @call
    end

    def tell_of_loss
      blocks = @watching.synchronize { @on_lost.slice!(0..-1) }
      blocks.each do |block|
        Thread.new { Thread.handle_interrupt(Object => :immediate) { block.call(remaining) } }
      end
    end
  end

  # A lock that its owner may take again, without its levels. The levels are the leases that programs get.
  class Core < Lease # :nodoc:
    attr_reader :levels

    def self.of_fiber
      Thread.current[:redlock_cores] ||= []
    end

    # The lock of all resources of the lease that this fiber already holds, if any. A lost lock counts, too, while one
    # of its blocks is still running.
    def self.find(lease)
      of_fiber.delete_if(&:over?)
      of_fiber.find { |core| core.of?(lease) }
    end

    public :settle_what_is_left

    def initialize(servers, resource, ttl)
      super
      @levels = []
      @process = Process.pid
    end

    # In a child, a lock of the parent does not count.
    def of?(lease)
      lease.servers.equal?(@servers) && (lease.keys - @keys).empty? && @process == Process.pid
    end

    # Whether no level can be added: the lock is not held, and none of its blocks is still running.
    def over?
      !held? && @levels.none? { |level| level.__send__(:in_block?) }
    end

    def enter(wait, level)
      @is_of_block = level.of_block?
      hold_on
      acquire(wait)
      Core.of_fiber.push(self)
    end

    # Whether an inner level need not extend the lock.
    def lasts?(ttl_ms)
      is_kept = @kept && !@lost && ttl_ms <= @ttl_ms
      is_kept || C.call("RedLockLease_RemainingMs", @handle.to_i) >= ttl_ms
    end

    def retain
      @calling.synchronize { take_status(C.call("RedLock_Retain", @handle.to_i)) }
    end

    def count
      C.call("RedLockLease_Levels", @handle.to_i)
    end

    def keep_alive
      super
      @kept = true
    end

    # Leaves one level.
    def leave(least_ms = nil)
      submit_unlock(least_ms)
    end

    # Called at the end of a level.
    def remove(level)
      @levels.delete_if { |it| it.equal?(level) }
      return unless @levels.empty?

      Core.of_fiber.delete_if { |core| core.equal?(self) }
      @unlocked = true
      let_go
    end
  end
  private_constant :Core

  # One of the leases of a lock that its thread may take again: see Manager#lock. Otherwise as a Lease; #extend,
  # #confirm, #keep_alive and #on_lost act on the lock, and so on all levels.
  class Level < Lease
    private def in_block?
      @in_block && !@left
    end

    def extend(ttl: @ttl)
      through_core { |core| core.extend(ttl: ttl) }
    end

    def extend_by(additional)
      through_core { |core| core.extend_by(additional) }
    end

    def confirm(least: 0)
      through_core { |core| core.confirm(least: least) }
    end

    def downgrade
      raise InvalidArgument.new("shared and reentrant exclude each other", -1)
    end

    def keep_alive
      through_core(&:keep_alive)
    end

    def detach
      ticket = through_core(&:detach)
      @unlocked = true
      leave_for_good
      ticket
    end

    def lost?
      @core.lost?
    end

    def on_lost(&block)
      @core.on_lost(&block)
      self
    end

    # Leaves this level; the last level is unlocked as by Lease#unlock. Lost: the lock had already ended.
    def unlock(hold_at_least: nil)
      raise Lost.new("the lock was already unlocked", 4) if @left || !@core

      least_ms = C.ms(hold_at_least, "hold_at_least") unless hold_at_least.nil?
      @unlocked = true
      @before = @core.count
      through_core { |core| core.leave(least_ms) }
    rescue InvalidArgument
      @unlocked = false
      raise
    ensure
      leave_for_good unless to_be_left?
    end

    def remaining
      @left || !@core ? 0.0 : @core.remaining
    end

    def held?
      !@left && !@core.nil? && @core.held?
    end

    def token
      @left || !@core ? "" : @core.token
    end

    def fencing_token
      @core&.fencing_token unless @left
    end

    private

    # Calls of this level are calls of the lock, one at a time.
    def through_core
      raise Lost.new("the lock was already unlocked", 4) if @left || !@core

      begin
        yield @core
      ensure
        @message = @core.message
      end
    end

    def refuse_nested
      found = Core.find(self)
      return super unless found

      @inner = found
    end

    def hold_on; end

    def let_go; end

    def acquire(wait)
      raise InvalidArgument.new("wait is negative", -1) if wait&.negative?

      if @inner
        enter_again(@inner)
      else
        enter_first(wait)
      end
      @message = @core.message
    rescue Taken, Unreachable, TooSlow => e
      raise @refusal = e
    end

    def enter_first(wait)
      core = Core.__send__(:new, @servers, @resources, @ttl)
      core.levels.push(self)
      @core = core
      @retains_from = 0
      core.enter(wait, self)
    end

    def enter_again(core)
      core.levels.push(self)
      @core = core
      core.extend(ttl: @ttl) unless core.lasts?(@ttl_ms)
      @retains_from = core.count
      core.retain
    end

    def as_innermost(&block)
      @in_block = true
      super
    end

    def release_what_is_held
      @core&.settle_what_is_left
      @core.leave if to_be_left?
      leave_for_good
      @released = true
    rescue Error
      leave_for_good
      @released = true # the lock expires
    end

    # Whether the lock is held and this level is still to be left. An exception may have interrupted entering or
    # leaving the level, before or after that took effect. The count in C tells which.
    def to_be_left?
      return false if @left || @retains_from.nil? || !@core.held?

      @before ? @core.count >= @before : @core.count > @retains_from
    end

    def leave_for_good
      return if @left || !@core

      @left = true
      @core.remove(self)
    end
  end
end
