# frozen_string_literal: true

require "fiddle"

# Locks that are held on a majority of independent Redis or Valkey servers, through the C library
# of that name:
#
#   locker = Redlock::Manager.new("127.0.0.1:6379", "127.0.0.1:6380", "127.0.0.1:6381")
#   locker.lock("report", ttl: 10) { |lease| ... }
#
# All times are seconds, and may be fractions. The library is the file that REDLOCK_LIBRARY names,
# or the one that the system's loader finds. Ruby 2.7 or later, and no gem: from 4.0 on Fiddle is one
# that comes with Ruby, so a Gemfile has to name it.
#
# Threads::   A thread that waits for a lock lets the others run. Timeout, Thread#raise, Thread#kill
#             and the exceptions of signal handlers end the waiting within a quarter of a second,
#             or when the attempt under way is over: servers that do not answer are waited for as
#             long as the timeouts allow. With the block form they never leave a lock behind.
# Processes:: A manager that was made before a fork serves the parent and its children, as under
#             Puma or Unicorn with an application that is loaded first. A lock belongs to the
#             process that took it: in a child, its calls raise Redlock::Forked, and neither an
#             exit nor the garbage collector releases it. Process.daemon is a fork, too.
# Fibers::    Where a Fiber scheduler runs, the pauses between two attempts let other fibers run.
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
  class Nested < Taken; end          # the block around this call holds it: locks are not reentrant
  class Unreachable < Error; end     # too few servers answered in time
  class TooSlow < Error; end         # granted, but too late to be of use
  class Lost < Error; end            # it is not held, or no longer
  class InvalidArgument < Error; end # the message names what was wrong
  class NoServers < Error; end       # no server was given
  class Forked < Error; end          # the lease belongs to the parent process
  class Internal < Error; end        # the message says what happened
  class Closed < Error; end          # the manager was closed

  ERRORS = {
    1 => Taken, 2 => Unreachable, 3 => TooSlow, 4 => Lost,
    -1 => InvalidArgument, -2 => NoServers, -3 => Forked, -4 => Internal
  }.freeze

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

    # These answer with a status. Other Ruby threads run while one of them does.
    CALLS = {
      "RedLock_AddServerUrl" => [ADDRESS, ADDRESS, INT],
      "RedLock_Connect" => [ADDRESS, MS],
      "RedLock_SetRetry" => [ADDRESS, INT, INT],
      "RedLock_SetTimeouts" => [ADDRESS, MS, MS],
      "RedLock_SetClockDriftFactor" => [ADDRESS, Fiddle::TYPE_DOUBLE],
      "RedLock_SetTlsCa" => [ADDRESS, ADDRESS],
      "RedLock_SetTlsCertificate" => [ADDRESS, ADDRESS, ADDRESS],
      "RedLock_SetTlsServerName" => [ADDRESS, ADDRESS],
      "RedLock_SetTlsInsecureSkipVerify" => [ADDRESS, BOOL],
      "RedLock_SetCredentials" => [ADDRESS, ADDRESS, ADDRESS],
      "RedLock_KeepLog" => [ADDRESS, INT],
      "RedLock_TryLockSlice" => [ADDRESS, ADDRESS, MS, MS, MS, ADDRESS],
      "RedLock_Extend" => [ADDRESS, ADDRESS, MS],
      "RedLock_Confirm" => [ADDRESS, ADDRESS, MS],
      "RedLock_Unlock" => [ADDRESS, ADDRESS],
      "RedLock_IsLocked" => [ADDRESS, ADDRESS, ADDRESS]
    }.freeze

    # These neither wait nor ask anybody: giving way to other threads would take longer than they do.
    LOOKS = {
      "RedLock_Version" => [POINTER],
      "RedLock_New" => [POINTER],
      "RedLock_Free" => [Fiddle::TYPE_VOID, ADDRESS],
      "RedLock_ErrorMessage" => [POINTER, ADDRESS],
      "RedLock_TakeLogLine" => [INT, ADDRESS, ADDRESS, Fiddle::TYPE_SIZE_T],
      "RedLockLease_New" => [POINTER],
      "RedLockLease_Free" => [Fiddle::TYPE_VOID, ADDRESS],
      "RedLockLease_IsHeld" => [BOOL, ADDRESS],
      "RedLockLease_RemainingMs" => [MS, ADDRESS],
      "RedLockLease_Token" => [POINTER, ADDRESS],
      "RedLockLease_ErrorMessage" => [POINTER, ADDRESS]
    }.freeze

    class << self
      def load_functions
        library, name = open_library
        functions = {}
        LOOKS.each { |it, (result, *types)| functions[it] = bind(library, name, it, types, result, true) }
        CALLS.each { |it, types| functions[it] = bind(library, name, it, types, INT, false) }
        functions.freeze
      end

      def call(function, *arguments)
        FUNCTIONS.fetch(function).call(*arguments)
      end

      def check(status, words)
        return true if status.zero?

        raise ERRORS.fetch(status, Error).new(words, status)
      end

      def words(pointer)
        pointer.to_s.dup.force_encoding(Encoding::UTF_8).scrub
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

      # Milliseconds; a little never becomes 0, which means something else.
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
        failures = (named ? [named] : NAMES).map do |name|
          library = Fiddle.dlopen(name)
          check_version(library, name)
          return [library, name]
        rescue Fiddle::DLError => e
          e.message
        end
        raise LoadError, "no redlock library (REDLOCK_LIBRARY may name one): #{failures.join('; ')}"
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

  # The C manager with what it was told. It is freed when it was closed and the last call on it is
  # over, or with its owner.
  class Servers # :nodoc:
    # The severities WARN and INFO of Ruby's Logger.
    WARN = 2
    INFO = 1
    # So many lines wait to be told in the midst of a long call; of more, the last ones.
    LOG_LINES = 1000
    LINE_BYTES = 1024

    attr_reader :retry_delay

    def initialize(retry_delay, user, password)
      @handle = C.handle("RedLock")
      @retry_delay = retry_delay
      @user = user
      # One that is not asked for is told once, and not kept: nobody finds it here.
      @ask = password if password.respond_to?(:call)
      @asking = Mutex.new # the words of a call are kept in the C manager: one call at a time
      @counting = Mutex.new
      @calls = 0
      @open = true
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
        tell if @logger
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

    # Anything that responds to +call+ with a severity and a line, or to +add+ as a Logger does.
    def logger=(logger)
      unless logger.nil? || logger.respond_to?(:call)
        raise TypeError, "a logger responds to add or call" unless logger.respond_to?(:add)

        logger = logger.method(:add)
      end
      @logger = logger
      call("RedLock_KeepLog", logger ? LOG_LINES : 0)
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
      @renewal ||= now + 1
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def inspect
      "#<#{self.class}>"
    end

    private

    # Tells the logger what the library has kept. C does not call it: on the way back there, what Timeout,
    # Thread#raise or a signal handler raises would leave the library in the midst of something. They
    # wait for the end of this, but for signal handlers.
    def tell
      return if Thread.current[:redlock_telling] # in the logger itself

      Thread.handle_interrupt(Object => :never) do
        Thread.current[:redlock_telling] = true
        line = Fiddle::Pointer.malloc(LINE_BYTES, Fiddle::RUBY_FREE)
        while @logger && !(level = C.call("RedLock_TakeLogLine", @handle.to_i, line.to_i, LINE_BYTES)).zero?
          tell_line(level == 1 ? WARN : INFO, C.words(line))
        end
      ensure
        Thread.current[:redlock_telling] = nil
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
    # Servers are host:port, or URLs such as redis://user:password@host:6379/0,
    # rediss://host:6379 or unix:///run/redis.sock. All programs that are to exclude each other
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
    # logger::           as for #logger=
    def initialize(*servers, user: nil, password: nil, tls: nil, retry_delay: 0.2, connect_timeout: 1.5,
                   reply_timeout: 0, drift_factor: 0.01, logger: nil)
      refuse_ractors
      servers = servers.flatten
      raise NoServers.new("no server was given", -2) if servers.empty?

      @count = servers.size
      @servers = Servers.new(C.seconds(retry_delay, "retry_delay"), user, password)
      set("RedLock_SetRetry", 3, C.ms(retry_delay, "retry_delay").clamp(-1, 2**31 - 1))
      timeouts = [C.ms(connect_timeout, "connect_timeout"), C.ms(reply_timeout, "reply_timeout")]
      set("RedLock_SetTimeouts", *timeouts)
      set("RedLock_SetClockDriftFactor", Float(drift_factor))
      use_tls(**tls.transform_keys(&:to_sym)) if tls && tls != true
      @servers.log_in(password) if user || password
      servers.each { |server| add(String(server), tls ? "rediss" : "redis") }
      self.logger = logger if logger
    end

    # Takes the lock for +ttl+ seconds and runs the block, and releases the lock however the block
    # ends. Where the block came to its end but the lock had run out before, Lost is raised.
    # Without a block it returns the lease, which is then the caller's to unlock; an exception from
    # outside (Timeout, Thread#raise) that comes before the caller has it loses it until the ttl is over.
    #
    # +wait+ is how many seconds to wait at most for a lock that cannot be had: 0 is one attempt,
    # nil is for ever. What the last attempt said is then raised: Taken, Unreachable or TooSlow.
    #
    # Locks are not reentrant: who asks in a block for the lock of that block gets Nested at once.
    def lock(resource, ttl:, wait: 5, &block)
      Lease.new(@servers, resource, ttl).take(wait, &block)
    end

    # As #lock with one attempt, but where the lock is held it returns nil, and runs no block.
    def try_lock(resource, ttl:, &block)
      lease = Lease.new(@servers, resource, ttl)
      lease.take(0, &block)
    rescue Taken => e
      raise unless lease.refused_by?(e) # then it comes out of the block
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

    # Connects now rather than at the first lock; returns when a quorum of the servers is up. It
    # returns words about the servers that are not up, and why: a name may be mis-spelled. They are
    # empty if all are. Where there is no quorum, Unreachable is raised.
    def connect(timeout: 0)
      @servers.renew_log_in
      set("RedLock_Connect", C.ms(timeout, "timeout"))
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

    # Fiddle, and the words of errors, are no use there: better to say so at once.
    def refuse_ractors
      return if !defined?(Ractor) || Ractor.current == Ractor.main

      raise Error, "redlock works in the main Ractor only"
    end

    def set(function, *arguments)
      @servers.call(function, *arguments)
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

  # One lock. It ends by itself when its time is over, so look at #remaining, or #confirm, before a
  # step that must not happen without it. Threads may share it.
  class Lease
    # How long C waits in one go: what comes from outside (Timeout, signals, Thread#kill) has to
    # wait for its end.
    SLICE = 0.25
    # As many signals, one after the other, do not keep a lock from being released.
    TRIES = 20
    private_constant :SLICE, :TRIES

    # The name that is locked, as it was given.
    attr_reader :resource

    # What the last call on it has to say. After a success: which servers could not take part, and why;
    # empty if all could. After a failure: the message of the exception.
    attr_reader :message

    def initialize(servers, resource, ttl) # :nodoc:
      @servers = servers
      @resource = String(resource).dup.freeze
      @name = C.string(resource, "the resource")
      @ttl = ttl
      @ttl_ms = C.ms(ttl, "ttl")
      @handle = C.handle("RedLockLease")
      @calling = Mutex.new # a call and the reading of its words belong together
      @unlocked = @released = false
      @message = ""
      @holds = []
    end

    # The body of Manager#lock.
    def take(wait, &block) # :nodoc:
      refuse_nested
      hold_on
      acquire(wait)
      return (@kept = self) unless block

      result = as_innermost(&block)
      finish
      result
    ensure
      # An exception from outside may come before #release has shut them out, and so may the next one.
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
      call("RedLock_Extend", @handle.to_i, C.ms(ttl, "ttl"))
    end

    # Asks the servers whether the lock is still ours, for at least so many seconds.
    def confirm(least: 0)
      call("RedLock_Confirm", @handle.to_i, C.ms(least, "least"))
    end

    # Releases the lock. Lost: it had already ended, and nothing of anybody else's was touched.
    # Unreachable: some servers could not be told; the lock expires there.
    def unlock
      @unlocked = true
      call("RedLock_Unlock", @handle.to_i, leaving: true)
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

    def inspect # :nodoc:
      "#<#{self.class} of #{@resource.inspect}, valid for #{remaining} s>"
    end

    # Whether this is a held lock of that very resource.
    def holds?(servers, name) # :nodoc:
      servers.equal?(@servers) && name == @name.to_s && held?
    end

    private

    # C waits a slice at a time. Where a Fiber scheduler runs (it may be another fiber of this thread
    # that holds the lock), all pauses are spent in Ruby.
    def acquire(wait)
      deadline = wait && @servers.now + waiting_time(wait)
      begin
        left = time_left(deadline)
        scheduled? ? attempt(0) : attempt(left)
      rescue Taken, Unreachable, TooSlow => e
        @refusal = e
        left = time_left(deadline) if scheduled?
        raise if left <= (scheduled? ? 0 : SLICE)

        sleep([@servers.retry_delay * rand(0.5...1.5), left].min) if scheduled?
        retry
      end
    end

    def time_left(deadline)
      deadline ? [deadline - @servers.now, 0].max : Float::INFINITY
    end

    # A manager that is closed meanwhile is not freed before #let_go.
    def hold_on
      @servers.enter
      @holds.push(true)
    end

    def let_go
      @servers.leave if @holds.pop
    end

    def waiting_time(wait)
      seconds = C.seconds(wait, "wait")
      raise InvalidArgument.new("wait is negative", -1) if seconds.negative?

      seconds
    end

    def scheduled?
      Fiber.respond_to?(:current_scheduler) && !Fiber.current_scheduler.nil?
    end

    # One slice, in which C goes on with the wait that the one before has left off.
    def attempt(left)
      @servers.renew_log_in
      times = [left == Float::INFINITY ? -1 : C.ms(left, "wait"), C.ms(SLICE, "a slice")]
      call("RedLock_TryLockSlice", @name.to_i, @ttl_ms, *times, @handle.to_i)
      @servers.some_server_failed unless @message.empty?
    rescue Unreachable
      @servers.some_server_failed
      raise
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
      return if innermost.none? { |lease| lease.holds?(@servers, @name.to_s) }

      words = "the block around this call holds #{@resource.inspect}: locks are not reentrant"
      raise @refusal = Nested.new(words, 1)
    end

    # The end of a block that ran through: it has a right to know if it ran without the lock.
    def finish
      unlock unless @unlocked
    rescue Unreachable
      false # the block had the lock to its end
    end

    # Thread#kill, Thread#raise and Timeout wait for the end of this. The exceptions of signal
    # handlers do not; they are raised when it is done.
    def release
      return if @kept || (@released && @holds.empty?)

      interruptions = []
      Thread.handle_interrupt(Object => :never) do
        unlock if !@released && held?
        @released = true
      rescue Error
        @released = true # it ends by itself
      rescue Exception => e # rubocop:disable Lint/RescueException
        interruptions.push(e)
        retry if interruptions.size < TRIES
      end
      let_go
      raise interruptions.first unless interruptions.empty?
    end

    def call(function, *arguments, leaving: false)
      @servers.use(leaving: leaving) do |address|
        @calling.synchronize do
          status = C.call(function, address, *arguments)
          @message = C.words(C.call("RedLockLease_ErrorMessage", @handle.to_i))
          C.check(status, @message)
        end
      end
    end
  end
end
