# frozen_string_literal: true

require "fiddle/import"

# Locks that are held on a majority of independent Redis or Valkey servers, through the C library
# of that name:
#
#   locker = Redlock::Manager.new("127.0.0.1:6379", "127.0.0.1:6380", "127.0.0.1:6381")
#   locker.lock("report", ttl: 10) { |lease| ... }
#
# All times are seconds, and may be fractions. The library is the file that REDLOCK_LIBRARY names,
# or the one that the system's loader finds.
module Redlock
  # A call that did not succeed. The message is for a person: what each server answered, with the
  # votes counted. The status is the number that the C library gave.
  class Error < StandardError
    attr_reader :status

    def initialize(message = nil, status = nil)
      super(message)
      @status = status
    end
  end

  class Taken < Error; end           # somebody else holds it
  class Unreachable < Error; end     # too few servers answered in time
  class TooSlow < Error; end         # granted, but too late to be of use
  class Lost < Error; end            # it is not held, or no longer
  class InvalidArgument < Error; end # the message names what was wrong
  class NoServers < Error; end       # no server was given
  class Forked < Error; end          # the lease belongs to the parent process
  class Internal < Error; end        # the message says what happened

  ERRORS = {
    1 => Taken, 2 => Unreachable, 3 => TooSlow, 4 => Lost,
    -1 => InvalidArgument, -2 => NoServers, -3 => Forked, -4 => Internal
  }.freeze

  # The C functions. Fiddle lets other Ruby threads run while one of them does.
  module C
    extend Fiddle::Importer

    def self.library
      names = ENV["REDLOCK_LIBRARY"] || %w[libredlock.so libredlock.so.0.1 libredlock.dylib]
      failures = Array(names).map do |name|
        return Fiddle.dlopen(name)
      rescue Fiddle::DLError => e
        e.message
      end
      raise LoadError, "no redlock library (REDLOCK_LIBRARY may name one): #{failures.join('; ')}"
    end

    dlload library
    typealias "address", "uintptr_t"
    typealias "ms", "long long"
    typealias "status", "int"
    extern "void *RedLock_New(void)"
    extern "void RedLock_Free(address)"
    extern "status RedLock_AddServerUrl(address, address, int)"
    extern "status RedLock_SetTimeouts(address, ms, ms)"
    extern "status RedLock_SetClockDriftFactor(address, double)"
    extern "const char *RedLock_ErrorMessage(address)"
    extern "status RedLock_TryLock(address, address, ms, ms, address)"
    extern "status RedLock_Extend(address, address, ms)"
    extern "status RedLock_Confirm(address, address, ms)"
    extern "status RedLock_Unlock(address, address)"
    extern "status RedLock_IsLocked(address, address, address)"
    extern "void *RedLockLease_New(void)"
    extern "void RedLockLease_Free(address)"
    extern "unsigned char RedLockLease_IsHeld(address)"
    extern "ms RedLockLease_RemainingMs(address)"
    extern "const char *RedLockLease_ErrorMessage(address)"

    # Pointers are passed as integers. Where Fiddle takes the address of a pointer itself, it
    # swallows an exception that Timeout or Thread#raise sends just then.
    def self.call(function, *arguments)
      self[function].call(*arguments.map { |a| a.is_a?(Fiddle::Pointer) ? a.to_i : a })
    end

    # Calls a function that answers with a status; the block knows where its words are.
    def self.check(function, *arguments)
      status = call(function, *arguments)
      return true if status.zero?

      raise ERRORS.fetch(status, Error).new(yield.to_s.force_encoding("UTF-8"), status)
    end

    # A handle that the garbage collector frees: the C functions for that do no I/O, and in a
    # forked child they touch nothing of the parent's.
    def self.handle(type)
      handle = call("#{type}_New")
      raise NoMemoryError, "#{type}_New" if handle.null?

      handle.free = self["#{type}_Free"].to_i
      handle
    end

    # Refuses what C would cut short: "a\0b" must not lock "a".
    def self.string(text)
      bytes = String(text).b
      raise InvalidArgument.new("a name holds a NUL byte", -1) if bytes.include?("\0")

      Fiddle::Pointer[bytes << "\0"]
    end

    def self.ms(seconds)
      (Float(seconds) * 1000).clamp(-1, 2**63 - 1).round
    end
  end
  private_constant :C

  # Takes locks on one set of servers. Threads may share it, and processes forked later may use it.
  class Manager
    # Servers are host:port, or URLs such as redis://user:password@host:6379/0 or
    # unix:///run/redis.sock. All programs that are to exclude each other must name the same ones.
    #
    # retry_delay::     mean pause between two attempts; each is random, half of it more or less
    # connect_timeout:: for connecting to a server
    # reply_timeout::   for a server's reply; 0 is a twentieth of the ttl, 0.025 to 0.5
    # drift_factor::    how much faster a server's clock may run than ours
    def initialize(*servers, retry_delay: 0.2, connect_timeout: 1.5, reply_timeout: 0, drift_factor: 0.01)
      raise NoServers.new("no server was given", -2) if servers.empty?

      @retry_delay = Float(retry_delay)
      @asking = Mutex.new # the words of a call are kept in the C manager: one call at a time
      @handle = C.handle("RedLock")
      call("RedLock_SetTimeouts", C.ms(connect_timeout), C.ms(reply_timeout))
      call("RedLock_SetClockDriftFactor", drift_factor)
      servers.each do |server|
        url = String(server).include?("://") ? server : "redis://#{server}"
        call("RedLock_AddServerUrl", C.string(url), 0)
      end
    end

    # Takes the lock for +ttl+ seconds and runs the block, and releases the lock however the block
    # ends. Where the block came to its end but the lock had run out before, Lost is raised.
    # Without a block it returns the lease, which is then the caller's to unlock.
    #
    # +wait+ is how many seconds to wait at most for a lock that cannot be had: 0 is one attempt,
    # nil is for ever. What the last attempt said is then raised: Taken, Unreachable or TooSlow.
    def lock(resource, ttl:, wait: 5, &block)
      Lease.new(@handle, resource, ttl).take(wait, @retry_delay, &block)
    end

    # Asks the servers whether anybody holds the resource. To take a lock, take it: the answer may
    # be out of date when it arrives.
    def locked?(resource)
      answer = Fiddle::Pointer.malloc(1, Fiddle::RUBY_FREE)
      call("RedLock_IsLocked", C.string(resource), answer)
      answer[0] != 0
    end

    private

    def call(function, *arguments)
      @asking.synchronize do
        C.check(function, @handle, *arguments) { C.call("RedLock_ErrorMessage", @handle) }
      end
    end
  end

  # One lock. It ends by itself when its time is over, so look at #remaining, or #confirm, before a
  # step that must not happen without it. Threads may share it.
  class Lease
    def initialize(manager, resource, ttl)
      @manager = manager
      @name = C.string(resource)
      @ttl = ttl
      @handle = C.handle("RedLockLease")
      @calling = Mutex.new # a call and the reading of its words belong together
      @unlocked = false
    end

    # The body of Manager#lock.
    def take(wait, delay) # :nodoc:
      acquire(wait, delay)
      return (kept = self) unless block_given?

      result = yield self
      finish
      result
    ensure
      release unless kept
    end

    # Gives the lock a new ttl, counted from now. Lost: it had ended. Unreachable: too few servers
    # answered, and what was valid stays valid until its old end.
    def extend(ttl: @ttl)
      call("RedLock_Extend", @handle, C.ms(ttl))
    end

    # Asks the servers whether the lock is still ours, for at least so many seconds.
    def confirm(least: 0)
      call("RedLock_Confirm", @handle, C.ms(least))
    end

    # Releases the lock. Lost: it had already ended, and nothing of anybody else's was touched.
    # Unreachable: some servers could not be told; the lock expires there.
    def unlock
      @unlocked = true
      call("RedLock_Unlock", @handle)
    end

    # How many seconds the lock is valid from now on; 0 when it is not.
    def remaining
      C.call("RedLockLease_RemainingMs", @handle) / 1000.0
    end

    # Whether the lock is held and valid now, by this machine's clock.
    def held?
      C.call("RedLockLease_IsHeld", @handle) != 0
    end

    private

    # Single attempts with a sleep in Ruby: that is where Timeout and Thread#kill get in.
    def acquire(wait, delay)
      deadline = now + wait if wait
      begin
        call("RedLock_TryLock", @name, C.ms(@ttl), 0, @handle)
      rescue Taken, Unreachable, TooSlow
        left = deadline ? deadline - now : Float::INFINITY
        raise if left <= 0

        sleep [delay * rand(0.5...1.5), left].min
        retry
      end
    end

    # The end of a block that ran through: it has a right to know if it ran without the lock.
    def finish
      unlock unless @unlocked
    rescue Unreachable
      false # the block had the lock to its end
    end

    # Thread#kill, Thread#raise and Timeout wait for the end of this. The exception of a signal
    # handler does not: the second go is for the case that it came before the first was sent.
    def release
      Thread.handle_interrupt(Object => :never) do
        release_if_held
      ensure
        release_if_held
      end
    end

    def release_if_held
      unlock if held?
    rescue Error
      false # it ends by itself
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def call(function, *arguments)
      @calling.synchronize do
        C.check(function, @manager, *arguments) { C.call("RedLockLease_ErrorMessage", @handle) }
      end
    end
  end
end
