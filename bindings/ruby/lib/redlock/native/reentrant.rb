# frozen_string_literal: true

module Redlock
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
