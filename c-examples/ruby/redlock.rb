# frozen_string_literal: true

require "fiddle"
require "fiddle/import"
require "io/wait" unless IO.method_defined?(:wait_readable)

# Locks that are held on a majority of independent Redis or Valkey servers, through the C library
# of that name:
#
#   locker = Redlock::Manager.new("127.0.0.1:6379", "127.0.0.1:6380", "127.0.0.1:6381")
#   locker.lock("report", ttl: 10) { |lease| ... }
#
# A job that may take longer than its lock has the lock kept: it is extended until the block ends, and the
# job hears of it in time where that cannot be done:
#
#   locker.lock("report", ttl: 10, keep_alive: true) do |lease|
#     pages.each { |page| lease.lost? ? break : write(page) }
#   end
#
# All times are seconds, and may be fractions. The library is the file that REDLOCK_LIBRARY names,
# the one that lies beside this file, or the one that the system's loader finds. Ruby 2.7 or later, and no
# gem: from 4.0 on Fiddle is one that comes with Ruby, so a Gemfile has to name it.
#
# Threads::   A thread that waits for a lock, or for servers, lets the others run. Timeout, Thread#raise,
#             Thread#kill and the exceptions of signal handlers end a call on a lock at once, also where
#             servers do not answer. With the block form they never leave a lock behind: the release at
#             its end is waited for, as long as the timeouts allow. Manager#locked? and Manager#connect are
#             over before they heed them.
# Processes:: A manager that was made before a fork serves the parent and its children, as under
#             Puma or Unicorn with an application that is loaded first. A lock belongs to the
#             process that took it: in a child, its calls raise Redlock::Forked, and neither an
#             exit nor the garbage collector releases it. Process.daemon is a fork, too.
# Fibers::    Where a Fiber scheduler runs (Ruby 3.1 or later), a call on a lock blocks its fiber alone.
# Ractors::   The main one only. Manager.new raises Redlock::Error in any other, and a manager cannot be
#             sent there.
module Redlock
  # A call that did not succeed. The message is for a person: what each server answered, with the
  # votes counted. The status is the number that the C library gave, or nil if it was not asked.
  class Error < StandardError
    attr_reader :status

    def initialize(message = nil, status = nil)
      super(message)
      @status = status
    end
  end

  class Taken < Error; end           # somebody else holds it
  class Nested < Taken; end          # the block around this call holds it, and not both are reentrant
  class Unreachable < Error; end     # too few servers answered in time
  class TooSlow < Error; end         # granted, but too late to be of use
  class Lost < Error; end            # it is not held, or no longer
  class InvalidArgument < Error; end # the message names what was wrong
  class NoServers < Error; end       # no server was given
  class Cancelled < Error; end       # the call was ended before its time
  class TooShort < Error; end        # it is held, but not for as long as #confirm was asked
  class Forked < Error; end          # the lease belongs to the parent process
  class Internal < Error; end        # the message says what happened
  class Closed < Error; end          # the manager was closed

  ERRORS = {
    1 => Taken, 2 => Unreachable, 3 => TooSlow, 4 => Lost, 5 => Cancelled, 7 => TooShort,
    -1 => InvalidArgument, -2 => NoServers, -3 => Forked, -4 => Internal
  }.freeze

  # What is known of a server, as Manager#servers tells it.
  #
  # name::       host:port, or the path of its socket
  # connected::  whether there is a connection
  # votes::      whether what it grants counts
  # words::      why it is not connected, or does not vote
  # round_trip:: how many seconds its last answer took; nil if it has given none
  # clock_offset:: by how many seconds its clock is ahead of this machine's; nil if that is not known
  #
  # What it said of itself when it was last asked; empty where it did not, or the user may not ask:
  #
  # version::  what program it is
  # role::     "primary", or "replica" or "sentinel", which cannot vote
  # run_id::   another after each start
  # keeps::    what outlives its process: "log, synced always", ..., "no log"
  # eviction:: its maxmemory-policy
  Server = Struct.new(:name, :connected, :votes, :words, :round_trip, :clock_offset, :version, :role, :run_id,
                      :keeps, :eviction, keyword_init: true)

  # What the servers say of a resource, as Manager#info tells it.
  #
  # locked::    whether anybody holds it
  # remaining:: for how many seconds it is held still, if it is neither extended nor unlocked;
  #             Float::INFINITY: for ever
  # shared::    whether several may hold it at the same time
  # readers::   how many do
  # words::     which servers could not answer, and why
  # permits_taken:: of a semaphore: how many permits somebody has; it is locked if all are taken
  Info = Struct.new(:locked, :remaining, :shared, :readers, :words, :permits_taken, keyword_init: true)

  # What a manager has counted since it was made, as Manager#stats tells it. Counts only grow; +waiting+ and +kept+ are
  # what there is now.
  #
  # acquisitions, extensions, confirmations, releases, adoptions, inspections:: Outcomes of the calls of that kind
  # detached::    locks that were given away
  # attempts::    how often the servers were asked for a lock, all at once
  # waits::       calls that had to wait for a lock, for a moment at least
  # renewed, not_renewed:: extensions of locks that are kept, and those that failed and were tried again
  # kept_lost::   locks that could not be kept
  # requests::    what was sent, to all servers together
  # connections, connections_lost, connections_failed:: that could be used, that were lost, and that could not be had
  # acquire_time, wait_time, hold_time, round_trip:: each a Histogram
  Stats = Struct.new(:acquisitions, :extensions, :confirmations, :releases, :adoptions, :inspections, :detached,
                     :attempts, :waits, :renewed, :not_renewed, :kept_lost, :requests, :connections,
                     :connections_lost, :connections_failed, :waiting, :kept, :acquire_time, :wait_time, :hold_time,
                     :round_trip, keyword_init: true)

  # How many calls of a kind have come to what.
  Outcomes = Struct.new(:ok, :taken, :unreachable, :too_slow, :lost, :too_short, :cancelled, :failed)

  # How many took how long: how many there were, and their seconds together. +buckets+ has how many took at most the seconds in +bounds+ of that
  # place, and more than those of the place before; the last one has no bound.
  Histogram = Struct.new(:total, :seconds, :buckets, :bounds)

  # The C functions.
  module C
    # The interface that this file is written for. Below 1.0 it may change with the second number.
    INTERFACE = "0.2"
    NAMES = %w[libredlock.so.0.2 libredlock.so libredlock.dylib].freeze

    # Pointers are passed as integers. Where Fiddle takes the address of a pointer itself, it
    # swallows an exception that Timeout or Thread#raise sends just then.
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

    # A mode in which several may hold a lock.
    SHARED = 1

    # What RedLock_NextEvent answers, and kinds of events.
    NO_EVENT = 6
    DONE = 0
    LOST = 1

    # These answer with a status. Other Ruby threads run while one of them does.
    CALLS = {
      "RedLock_AddServerUrl" => [ADDRESS, ADDRESS, INT],
      "RedLock_Connect" => [ADDRESS, MS],
      "RedLock_SetRetry" => [ADDRESS, INT, INT],
      "RedLock_SetTimeouts" => [ADDRESS, MS, MS],
      "RedLock_SetClockDriftFactor" => [ADDRESS, Fiddle::TYPE_DOUBLE],
      "RedLock_SetRestartGuard" => [ADDRESS, INT, MS, MS],
      "RedLock_SetFencing" => [ADDRESS, BOOL],
      "RedLock_SetTracing" => [ADDRESS, INT],
      "RedLock_SetWaking" => [ADDRESS, BOOL],
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

    # These neither wait nor ask anybody: giving way to other threads would take longer than they do.
    LOOKS = {
      "RedLock_Version" => [POINTER],
      "RedLock_New" => [POINTER],
      "RedLock_Free" => [Fiddle::TYPE_VOID, ADDRESS],
      "RedLock_ErrorMessage" => [POINTER, ADDRESS],
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

    # RedLock_NextEvent as a look, for servers whose names need not be looked up: a thread that gives way
    # beside one that computes waits a tenth of a second for its next turn.
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

      # The words may be those of no call: what a thread does beside one that fails may wipe them away.
      def check(status, words)
        return true if status.zero?

        words = words(call("RedLockStatus_Name", status)) if words.empty?
        raise ERRORS.fetch(status, Error).new(words, status)
      end

      def words(pointer)
        pointer.to_s.dup.force_encoding(Encoding::UTF_8).scrub
      end

      # The words that stand in a struct.
      def letters(room)
        room.take_while(&:nonzero?).pack("c*").force_encoding(Encoding::UTF_8).scrub
      end

      # A handle that the garbage collector frees: the C functions for that do no I/O, and in a
      # forked child they touch nothing of the parent's.
      def handle(type)
        handle = call("#{type}_New")
        raise NoMemoryError, "#{type}_New" if handle.null?

        handle.free = FUNCTIONS.fetch("#{type}_Free").to_i
        handle
      end

      # A string for C, in memory that does not move. Refuses what C would cut short: "a\0b" must
      # not lock "a".
      def string(text, what)
        bytes = String(text).b
        raise InvalidArgument.new("#{what} holds a NUL byte", -1) if bytes.include?("\0")

        copy = Fiddle::Pointer.malloc(bytes.bytesize + 1, Fiddle::RUBY_FREE)
        copy[0, bytes.bytesize + 1] = bytes << "\0"
        copy
      end

      # Whether a server is given by a name, which has to be looked up.
      def named?(server)
        # Sentinels may call a master by a name, or be called by one.
        return true if /\A[a-z]+[-+]sentinel:/i.match?(server)

        host = server[%r{\A(?:[^/]*://)?(?:[^/]*@)?(\[[^\]]*\]|[^:/]*)}, 1]
        !/\A(\[.*\]|[\d.]*)\z/.match?(host)
      end

      # Milliseconds; a little never becomes 0, which means something else.
      # What C would cut short is left to be refused by it.
      def count(permits)
        Integer(permits).clamp(-2**31, 2**31 - 1)
      end

      def ms(value, what)
        seconds = seconds(value, what)
        ms = (seconds * 1000).clamp(-(2**62), 2**62).round
        ms.zero? && !seconds.zero? ? (seconds <=> 0) : ms
      end

      def seconds(value, what)
        is_time = value.respond_to?(:to_f) && !value.nil? && !value.is_a?(String)
        raise TypeError, "#{what} is a number of seconds, not #{value.inspect}" unless is_time

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
        raise LoadError, "no redlock library (REDLOCK_LIBRARY may name one): #{failures.join('; ')}"
      end

      # A gem brings the library along.
      def names
        NAMES.map { |name| File.join(__dir__, name) }.select { |file| File.exist?(file) } + NAMES
      end

      def check_version(library, name)
        version = bind(library, name, "RedLock_Version", [], POINTER, true).call.to_s
        return if version.start_with?("#{INTERFACE}.")

        raise LoadError, "#{name} is redlock #{version}, and this file is for #{INTERFACE}"
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
        Fiddle::Function.new(address, types, result) # Ruby 2.7 gives way in every call
      end
    end

    FUNCTIONS = load_functions
  end
  private_constant :C

  # What has to come to its end, whatever comes from outside.
  module Undisturbed # :nodoc:
    MASKED = { Object => :never }.freeze
    # As many signals, one after the other, do not keep it from its end.
    TRIES = 20

    # Runs the block, again where it was cut short. Thread#kill, Thread#raise and Timeout wait for its end. The
    # exceptions of signal handlers do not; they are raised when it is done.
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

  # A submitted call: what it has come to, and what wakes its thread or fiber.
  class Call # :nodoc:
    # Nil until it is over.
    attr_reader :status

    def initialize
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

    # Until it is woken; at once if it was since the last time.
    def sleep
      @wakings.pop
    end
  end
  private_constant :Call

  # The calls that threads wait for. The first in line leads: it waits for the descriptor and takes the events
  # of all. The others sleep until their calls are over, or until they are the first.
  class Line # :nodoc:
    def initialize
      @mutex = Mutex.new
      @calls = {}.compare_by_identity
      @reader, @writer = pipe
    end

    # Yields whenever the call leads, until it is over or the block returns :enough. Who stands by leads only
    # where nobody else does.
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
      # A second signal may come before the first is dealt with; and else all others would sleep for ever.
      begin
        Undisturbed.run { leave(call) }
      ensure
        Undisturbed.run { leave(call) }
      end
    end

    # The call that leads waits, until the descriptor is readable or somebody else has taken its event.
    def pause(call, descriptor, seconds)
      @paused = call
      IO.select([descriptor, @reader], nil, nil, seconds) unless call.over?
    ensure
      @paused = nil
      @reader.read_nonblock(64, exception: false)
    end

    # The call is over.
    def end_call(call, status)
      call.end_with(status)
      @writer.write_nonblock(".", exception: false) if call.equal?(@paused)
    end

    private

    # An exception from outside that interrupts IO.pipe has Ruby 3.1 close the pipe's descriptors twice, and by
    # the second time they may be others': of a file, or of a connection. A thread of its own is beyond the reach
    # also of signal handlers, which run on the main thread and heed no mask. A handler that forks has a child
    # where that thread is no more: it is joined there, and has made nothing. (Thread#value breaks the stack of Ruby
    # 3.1.2 in such a child.)
    def pipe
      ends = nil
      Thread.handle_interrupt(Undisturbed::MASKED) { Thread.new { ends = make_pipe } }.join until ends
      ends
    end

    def make_pipe
      Thread.current.report_on_exception = false # whoever joins it has the exception
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

  # The events of a C manager, and who waits for them.
  class Events # :nodoc:
    # How many seconds a leader waits in one go. Only a child that a signal handler has forked in the midst of
    # a call needs it: what the parent waits for never comes there.
    PATIENCE = 1
    # The same where the system has no descriptor to wait for.
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

    # A call whose event is waited for: it is submitted with its object_id. Ends with #forget.
    def begin_call
      enter_process
      call = Call.new
      number = call.object_id
      @calls[number] = call
    end

    def forget(call)
      @calls.delete(call.object_id)
    end

    # From now on the lease is told that its lock cannot be kept: it is kept with its object_id. Returns whether
    # it was not before.
    def keep(lease)
      enter_process
      number = lease.object_id
      is_new = !@kept.key?(number)
      @kept[number] = lease
      is_new
    end

    def keep_no_more(lease)
      @kept.delete(lease.object_id)
    end

    def keeps?
      !@kept.empty?
    end

    # Waits until the call is over, or until the moment that the block says, if it says one. Fibers of a
    # scheduler leave it to the one that stands by, for their thread may be busy with another fiber.
    def wait(call, &look_up)
      take
      if in_scheduler?
        call.sleep until call.over?
      else
        lead(call, &look_up)
      end
    end

    # The same for who leads only where no thread waits for its call. The call never ends.
    def stand_by(call, &look_up)
      lead(call, standing_by: true, &look_up)
    end

    def in_scheduler?
      Fiber.respond_to?(:current_scheduler) && !Fiber.current_scheduler.nil?
    end

    # Does what is due and hands on the events that there are, also one that was left by a call of this that was
    # cut short.
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
      when C::LOST then @kept[@event.user_data]&.be_lost
      end
      @event.user_data = 0
    end

    # What is waited with belongs to a process. A child has a descriptor of its own, under another number
    # as long as it has the copy of its parent's.
    def enter_process
      return @process if @process == process

      line = Line.new
      @mutex.synchronize do
        begin_anew(line) unless @process == process
        @process
      end
    end

    # What cuts it short leaves it to the next call.
    def begin_anew(line)
      process = self.process # a signal handler may have forked since it was looked at
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

  # The C manager with what it was told. It is freed when it was closed and the last call on it is
  # over, or with its owner.
  class Servers # :nodoc:
    # The severities WARN, INFO and DEBUG of Ruby's Logger, by the levels of the library.
    SEVERITIES = { 1 => 2, 2 => 1 }.freeze
    DEBUG = 0
    # So many lines wait to be told in the midst of a long call; of more, the last ones.
    LOG_LINES = 1000
    LINE_BYTES = 1024

    attr_reader :events

    # How much faster a server's clock may run than ours.
    attr_accessor :drift

    def initialize(user, password, looks_up_names)
      @handle = C.handle("RedLock")
      @events = Events.new(@handle, looks_up_names)
      @user = user
      # One that is not asked for is told once, and not kept: nobody finds it here.
      @ask = password if password.respond_to?(:call)
      @asking = Mutex.new # the words of a call are kept in the C manager: one call at a time
      @counting = Mutex.new
      @calls = 0
      @open = true
      @lines = []
      @watching = Mutex.new
      @watched = {}.compare_by_identity
    end

    # Keeps the C manager from being freed before #leave. Who is +leaving+ may ask as long as it is
    # there. An exception from outside may leave a call counted that is over; then it is the garbage
    # collector that frees.
    def enter(leaving: false)
      @counting.synchronize do
        raise Closed, "the manager was closed" unless @open || (leaving && !@freed)

        @calls += 1
      end
    end

    def leave
      @counting.synchronize { free_if_done(@calls -= 1) }
    end

    # Yields the C manager.
    def use(leaving: false)
      entered = enter(leaving: leaving)
      begin
        yield @handle.to_i
      ensure
        tell if listens?
      end
    ensure
      leave if entered
    end

    # Returns what there is to say after a success.
    def call(function, *arguments)
      use do |address|
        @asking.synchronize do
          status = C.call(function, address, *arguments)
          words = C.words(C.call("RedLock_ErrorMessage", address))
          C.check(status, words)
          words
        end
      end
    end

    # What is known of each server.
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

    # What was counted.
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

    # The same as text.
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

    # Waits for a call that was submitted; returns its status. Who takes a lock is +patient+: meanwhile
    # servers may want another password.
    def wait_for(call, patient: false)
      watched = @events.in_scheduler?
      watch_over(call) if watched
      until call.over?
        patient ? @events.wait(call) { look_for_faults } : @events.wait(call)
        renew_log_in if patient && !watched
      end
      call.status
    ensure
      @watched.delete(call) if watched
    end

    # Has the lease told if its lock cannot be kept. Returns whether it was not before.
    def keep(lease)
      is_new = @events.keep(lease)
      watch_over(lease)
      is_new
    end

    def keep_no_more(lease)
      @events.keep_no_more(lease)
      @watched.delete(lease)
    end

    # Anything that responds to +call+ with a severity and a line, or to +add+ as a Logger does.
    def logger=(logger)
      unless logger.nil? || logger.respond_to?(:call)
        raise TypeError, "a logger responds to add or call" unless logger.respond_to?(:add)

        logger = logger.method(:add)
      end
      @logger = logger
      call("RedLock_KeepLog", listens? ? LOG_LINES : 0)
    end

    def close
      @counting.synchronize do
        @open = false
        free_if_done(@calls)
      end
    end

    def closed?
      !@open
    end

    # Tells the library the password that it is to log in with from now on.
    def log_in(password)
      @renewal = nil
      @told_in = Process.pid
      password = password.call if password.respond_to?(:call)
      user = @user && C.string(@user, "the user")
      password &&= C.string(password, "the password")
      call("RedLock_SetCredentials", user.to_i, password.to_i)
    end

    # A password that is asked for is asked for again in a new process, and after a call in which a
    # server could not take part: it may want another one by now. If that cannot be had, the old
    # one stays.
    def renew_log_in
      return unless @ask

      log_in(@ask) if @told_in != Process.pid || (@renewal && @renewal <= now)
    rescue StandardError
      false
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

    # From now on there is a thread that hears of the events for fibers and kept locks, while no other waits for
    # its own: until all of them have been over for a moment.
    def watch_over(something)
      @watching.synchronize do
        @watched.clear unless @watcher&.alive? # what there is was the parent's
        @watched[something] = true
        @watcher = Thread.new { watch } unless @watcher&.alive?
      end
    end

    def watch
      Thread.current.name = "redlock"
      Thread.current.report_on_exception = false
      Thread.handle_interrupt(Object => :immediate) do # whatever the thread that began it has masked
        use(leaving: true) { stand_by }
      end
    end

    def stand_by
      idle = Call.new
      until idle?
        @events.stand_by(idle) { look_for_faults }
        tell if listens?
        renew_log_in
      end
    end

    # Whether there was nothing to watch over for a moment. Then the thread is none from now on.
    def idle?
      @watching.synchronize do
        @idle_since = @watched.empty? ? @idle_since || now : nil
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

    # When a password is to be asked for.
    def look_for_faults
      take_lines if @ask
      @renewal
    end

    # Tells the logger what the library has kept. C does not call it: on the way back there, what Timeout,
    # Thread#raise or a signal handler raises would leave the library in the midst of something. They
    # wait for the end of this, but for signal handlers.
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

    def tell_line(severity, line)
      @logger&.call(severity, line)
    rescue StandardError
      false # a lock does not depend on it
    end

    def free_if_done(calls)
      return if @open || calls.positive? || @freed

      @freed = true
      @handle.free = nil
      C.call("RedLock_Free", @handle.to_i)
    end
  end
  private_constant :Servers

  # Takes locks on one set of servers. Threads may share it, and processes forked later may use it.
  class Manager
    # Each stands where its number in C says.
    GUARDS = %i[on strict off durable].freeze
    # What a logger is told of locks, each where its number in C says.
    TRACES = [nil, :events, :resources].freeze
    private_constant :GUARDS, :TRACES

    # Servers are host:port, or URLs such as redis://user:password@host:6379/0,
    # rediss://host:6379, unix:///run/redis.sock, or redis-sentinel://host,host2/master for a master
    # that Sentinels watch. All programs that are to exclude each other
    # must name the same ones.
    #
    # user::, password:: log-in for servers whose URL has none. A password may be anything that
    #                    responds to +call+: it is asked when the manager is made, in a forked
    #                    child, and a second after a server failed; so it may change.
    #                    What it raises comes out of the first of these calls only.
    # tls::              true, or a Hash, has servers that are given as host:port spoken to by TLS
    #                    as those of rediss:// are. Its keys, all optional: +ca+, +certificate+ and
    #                    +key+ name PEM files (without +ca+ the system's roots are trusted);
    #                    +server_name+ is the name that certificates have to have, if not the host;
    #                    +insecure_skip_verify+ true believes any certificate.
    # retry_delay::      mean pause between two attempts, each of them random. While locks change
    #                    hands, attempts are closer to each other.
    # connect_timeout::  for connecting to a server
    # reply_timeout::    for a server's reply; 0 is a twentieth of the ttl, 0.025 to 0.5
    # drift_factor::     how much faster a server's clock may run than ours
    # restart_guard::    what is done against servers that lose their memory, as in a restart without
    #                    their data. With :on they have no vote until the locks that they may have
    #                    forgotten have ended; with :strict, servers that seem to be new have none at
    #                    first either. With :off every server that can be reached has a vote, and with
    #                    :durable as well: then the program vouches that no server ever forgets.
    # longest_ttl::      the longest ttl that any client uses on these servers; nil: what is noted on them
    # guard_cap::        for how long a server is left without a vote at most; nil: 600
    # fencing::          true: locks come with a fencing token, see Lease#fencing_token. All who lock the
    #                    resource must have it. The servers count in the key with :f behind the name of
    #                    the resource, so lock none of such a name.
    # waking::           false: calls that wait ask now and then, rather than being told when another process
    #                    releases the lock, and releases tell nobody. Waiters stand in line in the key with
    #                    :w behind the name of the resource, so lock none of such a name.
    # logger::           as for #logger=
    # trace::            :events has the logger told what becomes of locks as well, at the severity DEBUG: one line for each
    #                    event, as key=value. :resources the same with the names of the resources.
    def initialize(*servers, user: nil, password: nil, tls: nil, retry_delay: 0.2, connect_timeout: 1.5,
                   reply_timeout: 0, drift_factor: 0.01, restart_guard: :on, longest_ttl: nil, guard_cap: nil,
                   fencing: false, waking: true, logger: nil, trace: nil)
      refuse_ractors
      servers = servers.flatten
      raise NoServers.new("no server was given", -2) if servers.empty?

      @count = servers.size
      @servers = Servers.new(user, password, servers.any? { |server| C.named?(String(server)) })
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
      self.logger = logger if logger || password.respond_to?(:call) # which lines say when to ask
    end

    # Takes the lock for +ttl+ seconds and runs the block, and releases the lock however the block
    # ends. Where the block came to its end but the lock had run out before, Lost is raised.
    # Without a block it returns the lease, which is then the caller's to unlock; an exception from
    # outside (Timeout, Thread#raise) that comes before the caller has it loses it until the ttl is over.
    #
    # +wait+ is how many seconds to wait at most for a lock that cannot be had: 0 is one attempt,
    # nil is for ever. What the last attempt said is then raised: Taken, Unreachable or TooSlow.
    #
    # +keep_alive+ has the lock kept, as by Lease#keep_alive.
    #
    # +shared+: others may have the lock at the same time that want it shared, too, and nobody can have it
    # alone. While somebody waits for that, nobody is let in that comes later to have it shared. Such a lock has no
    # fencing token. Besides the resource, the servers use the keys with :r and :i behind its name, so lock none
    # of such names.
    #
    # +resource+ may be an array, as in <tt>lock(%w[a b], ttl: 10)</tt>: its names are locked at once, all or none,
    # by one lock, which is extended and lost as a whole, and keeps out whoever wants one of them. 1 to 128
    # names in any order, each different. Which one was in the way is told by its number.
    #
    # +reentrant+ lets this thread (or fiber) take it again while it has it, if that call says so, too. Each call
    # has a Lease of its own, and only the last of them that is unlocked asks servers. An inner lock that needs
    # more time than is left extends it, with one attempt; one that is kept needs no more than that. A lock that
    # is lost is told at every level: Lost. Without +reentrant+, who asks in a block for the lock of that block gets
    # Nested at once, unless both are shared.
    def lock(resource, ttl:, wait: 5, keep_alive: false, reentrant: false, shared: false, &block)
      kind_of(reentrant, shared).new(@servers, resource, ttl, shared: shared).take(wait, keep_alive, &block)
    end

    # As #lock with one attempt, but where the lock is held it returns nil, and runs no block.
    def try_lock(resource, ttl:, keep_alive: false, reentrant: false, shared: false, &block)
      lease = kind_of(reentrant, shared).new(@servers, resource, ttl, shared: shared)
      lease.take(0, keep_alive, &block)
    rescue Taken => e
      raise unless lease.refused_by?(e) # then it comes out of the block
    end

    # A resource that so many may have at the same time, in all programs with the same servers: a Semaphore.
    # +permits+ is from 1 to 256, and has to be the same for all: else there are as many as the greatest of
    # these. Who locks the resource uses one permit. Each lasts for +ttl+ seconds unless it is extended or
    # unlocked; with +keep_alive+ it is kept until it is unlocked.
    #
    #   api = manager.semaphore("api", permits: 8, ttl: 10)
    #   api.acquire { |lease| ... }
    def semaphore(resource, permits:, ttl:, keep_alive: false)
      Semaphore.new(self, @servers, resource, Integer(permits), ttl, keep_alive)
    end

    # Takes over a lock that was given away with Lease#detach, in this process or another: the servers are asked
    # whether it is there. Lost: it has ended. Unreachable: too few servers answered, and it may be tried
    # again. With a block it is released when that ends, and its value is returned; else the Lease is. What
    # Lease#extend gives it without an argument is what it was valid for now.
    #
    # Adopt a ticket once: who adopts it again shares the lock, as threads that share a lease do, and the
    # first to unlock it releases it for both.
    def adopt(ticket, keep_alive: false, &block)
      Lease.new(@servers, "", 0).take_over(ticket, keep_alive, &block)
    end

    # Asks the servers whether anybody holds the resource. To take a lock, take it: the answer may
    # be out of date when it arrives.
    def locked?(resource)
      answer = Fiddle::Pointer.malloc(1, Fiddle::RUBY_FREE)
      name = C.string(resource, "the resource")
      @servers.renew_log_in
      set("RedLock_IsLocked", name.to_i, answer.to_i)
      answer[0] != 0
    end

    # Asks the servers whether anybody holds the resource, and for how long still: an Info. It finds the lock
    # of any client, and changes nothing. To take a lock, take it: the answer may be out of date when it
    # arrives. With +permits+: how many permits are taken of a semaphore that has so many.
    def info(resource, permits: 0)
      found = C::Structs::Info.malloc(Fiddle::RUBY_FREE)
      found.size = C::Structs::Info.size
      found.permits = C.count(permits)
      name = C.string(resource, "the resource")
      @servers.renew_log_in
      set("RedLock_Inspect", name.to_i, 0, found.to_i)
      info_of(found)
    end

    # Connects now rather than at the first lock; returns when a quorum of the servers is up. It
    # returns words about the servers that are not up, and why: a name may be mis-spelled. They are
    # empty if all are. Where there is no quorum, Unreachable is raised.
    def connect(timeout: 0)
      @servers.renew_log_in
      set("RedLock_Connect", C.ms(timeout, "timeout"))
    end

    # What is known of each server, in the order in which they were given: an array of Server. Nobody is asked,
    # and nothing is waited for.
    def servers
      @servers.portraits
    end

    # What was counted since the manager was made: Stats. Nobody is asked, and nothing is waited for.
    def stats
      @servers.stats
    end

    # The same, and what is known of each server, as Prometheus reads it; content type
    # "text/plain; version=0.0.4".
    def stats_text
      @servers.stats_text
    end

    # Sets who is told of servers that are lost, refuse or come back; nil: nobody. It is a Logger, or
    # responds to +call+ with a severity and a line of text. The severities are those of Logger: WARN for
    # a fault of a server, INFO for what is mended. It is called by the thread whose call met with it,
    # at the end of that call, and may use this manager. A StandardError that it raises is ignored, and
    # Timeout, Thread#raise and Thread#kill wait for its end. Neither a password nor a token is in the text.
    def logger=(logger)
      @servers.logger = logger
    end

    # Closes the connections when the last lease is unlocked; a new call raises Closed. A manager that
    # nobody refers to any more is closed as well.
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

    def kind_of(reentrant, shared)
      both = "who shares a lock may take it again: it is not reentrant"
      raise InvalidArgument.new(both, -1) if reentrant && shared

      reentrant ? Level : Lease
    end

    # Fiddle, and the words of errors, are no use there: better to say so at once.
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
      raise InvalidArgument.new("trace is #{what.inspect}, not one of #{TRACES.inspect}", -1) unless number

      set("RedLock_SetTracing", number)
    end

    def guard(mode, longest_ttl, cap)
      number = GUARDS.index(mode)
      unless number
        raise InvalidArgument.new("restart_guard is #{mode.inspect}, not one of #{GUARDS.inspect}", -1)
      end

      set("RedLock_SetRestartGuard", number, C.ms(longest_ttl, "longest_ttl"), C.ms(cap, "guard_cap"))
    end

    def add(server, scheme)
      url = C.string(server.include?("://") ? server : "#{scheme}://#{server}", "a server")
      set("RedLock_AddServerUrl", url.to_i, 0)
    end

    def use_tls(ca: nil, certificate: nil, key: nil, server_name: nil, insecure_skip_verify: false)
      files = [ca, certificate, key].map { |file| file && C.string(File.path(file), "a file") }
      set("RedLock_SetTlsCa", files[0].to_i) if ca
      set("RedLock_SetTlsCertificate", files[1].to_i, files[2].to_i) if certificate || key
      if server_name
        name = C.string(server_name, "server_name")
        set("RedLock_SetTlsServerName", name.to_i)
      end
      set("RedLock_SetTlsInsecureSkipVerify", 1) if insecure_skip_verify
    end
  end

  # A resource that so many may have at the same time, as Manager#semaphore returns it. Threads and fibers may share
  # it, and one of them may have several permits. A permit is a Lease.
  class Semaphore
    # The name, as it was given, and how many permits there are.
    attr_reader :resource, :permits

    def initialize(manager, servers, resource, permits, ttl, keep_alive) # :nodoc:
      raise InvalidArgument.new("permits is #{permits}, less than 1", -1) if permits < 1

      @manager = manager
      @servers = servers
      @resource = resource
      @permits = permits
      @ttl = ttl
      @keep_alive = keep_alive
    end

    # Takes a permit and runs the block, and unlocks it however the block ends; without a block it returns
    # the Lease. +wait+ and what is raised are as for Manager#lock.
    def acquire(wait: 5, &block)
      lease.take(wait, @keep_alive, &block)
    end

    # As #acquire with one attempt, but where all permits are taken it returns nil, and runs no block.
    def try_acquire(&block)
      lease = self.lease
      lease.take(0, @keep_alive, &block)
    rescue Taken => e
      raise unless lease.refused_by?(e) # then it comes out of the block
    end

    # Asks the servers how many permits somebody has. The answer may be out of date when it arrives.
    def taken
      @manager.info(@resource, permits: @permits).permits_taken
    end

    def inspect # :nodoc:
      "#<#{self.class} #{@resource.inspect} of #{@permits} permits>"
    end

    protected

    def lease
      Lease.new(@servers, @resource, @ttl, permits: C.count(@permits))
    end
  end

  # One lock. It ends by itself when its time is over, so look at #remaining, or #confirm, before a
  # step that must not happen without it. Threads may share it.
  class Lease
    # The name that is locked, as it was given; the first of several.
    def resource
      @resources.first
    end

    # All names that are locked, as they were given: one, or several.
    attr_reader :resources

    # What the last call on it has to say. After a success: which servers could not take part, and why;
    # empty if all could. After a failure: the message of the exception.
    attr_reader :message

    def initialize(servers, resource, ttl, permits: 0, shared: false) # :nodoc:
      @servers = servers
      @wants_shared = shared ? true : false
      @permits = permits # of the semaphore, if it is one
      names = resource.is_a?(Array) ? resource : [resource]
      raise InvalidArgument.new("there is no resource to be locked", -1) if names.empty?

      @resources = names.map { |name| String(name).dup.freeze }.freeze
      @names = @resources.map { |name| C.string(name, "the resource") }
      @ttl = ttl
      @ttl_ms = C.ms(ttl, "ttl")
      @handle = C.handle("RedLockLease")
      @calling = Mutex.new # a call and the reading of its words belong together
      @unlocked = @released = @lost = false
      @watching = Mutex.new
      @on_lost = []
      @message = ""
      @holds = []
    end

    # The body of Manager#lock.
    def take(wait, keeps, &block) # :nodoc:
      refuse_nested
      have(-> { acquire(wait) }, keeps, &block)
    end

    # The body of Manager#adopt.
    def take_over(ticket, keeps, &block) # :nodoc:
      have(-> { adopt(ticket) }, keeps, &block)
    end

    # Has the lock by this, for the length of the block if there is one.
    def have(by, keeps, &block) # :nodoc:
      hold_on
      by.call
      keep_alive if keeps
      return (@handed_out = self) unless block

      result = as_innermost(&block)
      finish
      result
    ensure
      # What signal handlers raise may come before #release has shut it out, and so may the next one.
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

    # Whether this is what was said when it was asked for, rather than something from the block.
    def refused_by?(error) # :nodoc:
      error.equal?(@refusal)
    end

    # Gives the lock a new ttl, counted from now. Lost: it had ended. Unreachable: too few servers
    # answered, and what was valid stays valid until its old end.
    def extend(ttl: @ttl)
      call("RedLock_SubmitExtend", @handle.to_i, C.ms(ttl, "ttl"))
    end

    # As #extend, for so many seconds longer than the lock is valid now.
    def extend_by(additional)
      more_ms = C.ms(additional, "additional")
      raise InvalidArgument.new("there is nothing to extend the lock by", -1) unless more_ms.positive?

      # With what is allowed for drift, 2 ms for the precision of expiry, and a rounding.
      validity_ms = C.call("RedLockLease_RemainingMs", @handle.to_i) + more_ms
      ttl_ms = ((validity_ms + 3) / (1 - @servers.drift)).ceil
      call("RedLock_SubmitExtend", @handle.to_i, [ttl_ms, 10**15].min)
    end

    # Whether others may have the lock at the same time.
    def shared?
      C.call("RedLockLease_Mode", @handle.to_i) == C::SHARED
    end

    # Makes a shared lock of one that was had alone, which nobody can have had alone in between. There is no way
    # back. Lost: it had ended. Unreachable: too few servers answered; it is held until its old end, as a shared lock
    # if #shared? says so, and calling again is allowed.
    def downgrade
      call("RedLock_SubmitDowngrade", @handle.to_i)
    end

    # Asks the servers whether the lock is still ours, for at least so many seconds. Lost: it is not. TooShort:
    # it is, but not for that long.
    def confirm(least: 0)
      call("RedLock_SubmitConfirm", @handle.to_i, C.ms(least, "least"))
    end

    # Has the lock kept until it is unlocked: the library extends it, with the ttl that it was given last,
    # whenever a third of that has passed, on a thread of its own that no Ruby code holds up. Where it cannot
    # be kept, #lost? and #on_lost tell while a tenth of the ttl is left at least, unless somebody took the
    # lock away. It ends with its process, at the latest one ttl after it; but it is kept also where nobody
    # refers to the lease any more. Lost: it is not held.
    def keep_alive
      @servers.use do |address|
        @calling.synchronize do
          settle(address)
          @servers.call("RedLock_SetBackgroundThread", 1)
          is_new = @servers.keep(self)
          take_status(C.call("RedLock_KeepAlive", address, @handle.to_i, object_id))
        rescue Error
          @servers.keep_no_more(self) if is_new
          raise
        end
      end
    end

    # Gives the lock away, and returns a ticket, by which another process, or manager, adopts it: see
    # Manager#adopt. The lease holds nothing then, and a block releases nothing. Until it is adopted nobody
    # extends the lock, and it ends when its time is over. Nobody is asked. Lost: it had ended.
    #
    # The ticket is as secret as the token, which is in it: hand it over by a pipe or by the environment, not
    # as an argument of a program, which everybody can see.
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

    # Whether the lock has ended although nobody unlocked it, or cannot be kept: then what it guards has to
    # stop within what is #remaining of it.
    def lost?
      @lost || (!@unlocked && !held?)
    end

    # The block is called once, on a thread of its own, with the seconds that the lock is valid still, when
    # it turns out that a lock which is kept cannot be kept; at once if that is known already. To have the
    # job itself interrupted:
    #
    #   job = Thread.current
    #   lease.on_lost { job.raise(Redlock::Lost) }
    def on_lost(&block)
      raise ArgumentError, "no block given" unless block

      @watching.synchronize { @on_lost.push(block) }
      tell_of_loss if @lost
      self
    end

    def be_lost # :nodoc:
      @lost = true
      tell_of_loss
    end

    # Releases the lock. Lost: it had already ended, and nothing of anybody else's was touched.
    # Unreachable: some servers could not be told; the lock expires there.
    def unlock
      # Nobody is told of a lock that is being unlocked: so it is told before that it had ended.
      be_lost if !@unlocked && !@on_lost.empty? && !held?
      @unlocked = true
      call("RedLock_SubmitUnlock", @handle.to_i, leaving: true)
    ensure
      let_go unless held?
    end

    # How many seconds the lock is valid from now on; 0 when it is not.
    def remaining
      C.call("RedLockLease_RemainingMs", @handle.to_i) / 1000.0
    end

    # Whether the lock is held and valid now, by this machine's clock.
    def held?
      C.call("RedLockLease_IsHeld", @handle.to_i) != 0
    end

    # What stands on the servers as the value of the key; empty if it holds no lock. Keep it to yourself:
    # who knows it can release the lock. Nothing else shows it.
    def token
      @calling.synchronize { C.words(C.call("RedLockLease_Token", @handle.to_i)) }
    end

    # With <tt>fencing: true</tt>, a number that is greater than those of all locks of the same resource before;
    # else nil. Hand it to what the lock guards with each write, and have it refuse a number that is less than
    # the greatest it has seen, as a database does with <tt>UPDATE ... WHERE fence <= :token</tt>. Then a holder
    # that was paused beyond the end of its lock cannot undo what the next one wrote. It does not change when
    # the lock is extended, and is there still when the lock has expired or was lost, until it is unlocked.
    def fencing_token
      token = C.call("RedLockLease_FencingToken", @handle.to_i)
      token unless token.zero?
    end

    def inspect # :nodoc:
      what = @resources.one? ? resource : @resources
      "#<#{self.class} of #{what.inspect}, valid for #{remaining} s>"
    end

    # Which of these resources this is a held lock of; nil if of none.
    def held_of(servers, resources) # :nodoc:
      (resources & @resources).first if @permits.zero? && servers.equal?(@servers) && held?
    end

    private

    def acquire(wait)
      wait_ms = wait.nil? ? -1 : C.ms(wait, "wait")
      raise InvalidArgument.new("wait is negative", -1) if wait && wait_ms.negative?

      @servers.renew_log_in
      options = options(wait_ms)
      call("RedLock_SubmitAcquire", options.to_i, @handle.to_i, patient: true)
    rescue Taken, Unreachable, TooSlow => e
      raise @refusal = e
    ensure
      options&.to_i # C has read it by now
    end

    def adopt(ticket)
      text = C.string(ticket, "the ticket")
      @servers.renew_log_in
      call("RedLock_SubmitAdopt", text.to_i, @handle.to_i, patient: true)
      @resources = adopted_names.freeze
      @names = @resources.map { |name| C.string(name, "the resource") }
      @ttl = C.call("RedLockLease_ValidityMs", @handle.to_i) / 1000.0
    ensure
      text&.to_i # C has read it by now
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
      held = outer.filter_map { |lease| lease.held_of(@servers, @resources) }.first
      return unless held

      words = "the block around this call holds #{held.inspect}: locks are not reentrant unless both ask for that"
      raise @refusal = Nested.new(words, 1)
    end

    # The end of a block that ran through: it has a right to know if it ran without the lock.
    def finish
      unlock unless @unlocked
    rescue Unreachable
      false # the block had the lock to its end
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
      @released = true # it ends by itself
    end

    # Submits a call and waits for its end.
    def call(function, *arguments, leaving: false, patient: false)
      @servers.use(leaving: leaving) do |address|
        @calling.synchronize do
          settle(address)
          take_status(begin
            @call = @servers.events.begin_call
            status = C.call(function, address, *arguments, @call.object_id)
            status.zero? ? @servers.wait_for(@call, patient: patient) : @call.end_with(status)
            @call.status
          ensure
            settle(address)
          end)
        end
      end
    end

    def take_status(status)
      @message = C.words(C.call("RedLockLease_ErrorMessage", @handle.to_i))
      C.check(status, @message)
    end

    # Ends the call that is under way, if there is one: who waited for it was interrupted. Its event comes at
    # once; if none comes, it was never submitted.
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

  # A lock that its owner may take again, without its levels: they are the leases that programs have.
  class Core < Lease # :nodoc:
    attr_reader :levels

    def self.of_fiber
      Thread.current[:redlock_cores] ||= []
    end

    # The lock that this fiber has already of all these, if it has; also where it is lost in a block that goes on.
    def self.find(servers, resources)
      of_fiber.delete_if(&:over?)
      of_fiber.find { |core| core.of?(servers, resources) }
    end

    public :settle_what_is_left

    def initialize(servers, resource, ttl)
      super
      @levels = []
      @process = Process.pid
    end

    # One of the parent's is somebody else's in a child.
    def of?(servers, resources)
      servers.equal?(@servers) && (resources.map(&:b) - @resources.map(&:b)).empty? && @process == Process.pid
    end

    # Whether no level can be added: none is there, or what is there is lost, and no block goes on.
    def over?
      !held? && @levels.none?(&:in_block?)
    end

    def enter(wait)
      hold_on
      acquire(wait)
      Core.of_fiber.push(self)
    end

    # Whether an inner level has to extend it.
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

    # One level is left.
    def leave
      call("RedLock_SubmitUnlock", @handle.to_i, leaving: true)
    end

    # For the end of a level.
    def remove(level)
      @levels.delete_if { |it| it.equal?(level) }
      return unless @levels.empty?

      Core.of_fiber.delete_if { |core| core.equal?(self) }
      @unlocked = true
      let_go
    end
  end
  private_constant :Core

  # One of the leases of a lock that its thread may take again: see Manager#lock. As a Lease otherwise; #extend,
  # #confirm, #keep_alive and #on_lost are about the lock, and so for all levels.
  class Level < Lease
    def in_block? # :nodoc:
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
      raise InvalidArgument.new("a lock that its owner may take again cannot be shared", -1)
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

    # Leaves this level; if it is the last one, as Lease#unlock. Lost: the lock had already ended.
    def unlock
      raise Lost.new("the lock was unlocked before", 4) if @left || !@core

      @unlocked = true
      @before = @core.count
      through_core(&:leave)
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

    # Calls of this level are those of the lock, one at a time.
    def through_core
      raise Lost.new("the lock was unlocked before", 4) if @left || !@core

      begin
        yield @core
      ensure
        @message = @core.message
      end
    end

    def refuse_nested
      found = Core.find(@servers, @resources)
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
      core = Core.new(@servers, @resources, @ttl)
      core.levels.push(self)
      @core = core
      @retains_from = 0
      core.enter(wait)
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
      @released = true # it ends by itself
    end

    # Whether a level of a lock that is held is this one's. What was entering or leaving it may have been cut short,
    # before or after that was done: C knows.
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
