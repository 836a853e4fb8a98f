# frozen_string_literal: true

require "fiddle"

module Redlock
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
end
